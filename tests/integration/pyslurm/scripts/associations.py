"""Who may use which account: associations.py USER..."""

import sys

import slurmrest.pyslurm as pyslurm

db_filter = pyslurm.db.AssociationFilter(users=sys.argv[1:])
for assoc in pyslurm.db.Associations.load(db_filter).values():
    print(assoc.id, assoc.cluster, assoc.account, assoc.user, assoc.shares)
