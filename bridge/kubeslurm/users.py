"""The tenants' users as files that libnss-extrausers reads: passwd, group and shadow.

Pure; the operator keeps them in a ConfigMap that is mounted at /var/lib/extrausers in slurmctld's and slurmd's pods, so
that no image has to know a user. What always holds: names and ids were checked by the model, so no line can be forged.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping

from kubeslurm.api.tenants import Tenant, User


def files(tenants: Iterable[Tenant]) -> Mapping[str, str]:
    """passwd(5), group(5) and shadow(5)."""
    found = {tenant.user for tenant in tenants}
    users = sorted((user.uid, user.name, user.gid) for user in found)
    return {
        "passwd": "".join(f"{name}:x:{uid}:{gid}:{name}:/tmp:/bin/bash\n" for uid, name, gid in users),
        "group": "".join(f"{name}:x:{gid}:{','.join(members)}\n" for gid, name, members in _groups(found)),
        "shadow": "".join(f"{name}:*:19000:0:99999:7:::\n" for _, name, _ in users),
    }


def _groups(users: Iterable[User]) -> list[tuple[int, str, list[str]]]:
    """A group that the spec does not name has the name of its first user; and is left nameless where that name is taken."""
    ordered = sorted(users, key=lambda user: user.uid)
    names = {group.gid: group.name for user in ordered for group in user.groups}
    for user in ordered:
        if user.gid not in names and user.name not in names.values():
            names[user.gid] = user.name
    members = {gid: [one.name for one in ordered if gid in {group.gid for group in one.groups}] for gid in names}
    return [(gid, names[gid], members[gid]) for gid in sorted(names)]


def digest(tenants: Iterable[Tenant]) -> str:
    """Changes when the files do."""
    text = repr(("with digest", sorted(files(tenants).items())))  # another form of the ConfigMap is another digest
    return hashlib.sha256(text.encode()).hexdigest()[:16]
