"""The tenants' users as files that libnss-extrausers reads: passwd, group and shadow.

Pure; the operator keeps them in a ConfigMap that is mounted at /var/lib/extrausers in slurmctld's and slurmd's pods, so
that no image has to know a user. What always holds: names and ids were checked by the model, so no line can be forged.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping

from kubeslurm.api.tenants import Tenant


def files(tenants: Iterable[Tenant]) -> Mapping[str, str]:
    """passwd(5), group(5) and shadow(5); a group has the name of the first user in it."""
    users = sorted({(tenant.user.uid, tenant.user.name, tenant.user.gid) for tenant in tenants})
    groups: dict[int, str] = {}
    for _, name, gid in users:
        groups.setdefault(gid, name)
    return {
        "passwd": "".join(f"{name}:x:{uid}:{gid}:{name}:/tmp:/bin/bash\n" for uid, name, gid in users),
        "group": "".join(f"{name}:x:{gid}:\n" for gid, name in sorted(groups.items())),
        "shadow": "".join(f"{name}:*:19000:0:99999:7:::\n" for _, name, _ in users),
    }


def digest(tenants: Iterable[Tenant]) -> str:
    """Changes when the files do."""
    text = repr(("with digest", sorted(files(tenants).items())))  # another form of the ConfigMap is another digest
    return hashlib.sha256(text.encode()).hexdigest()[:16]
