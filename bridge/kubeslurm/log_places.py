"""Where the output of a replica is: the Slurm job, its node and its tasks, and the program that reads them there.

Pure. `mirror` writes the place into the pod's `containerID`, the operator seals it with a key of the cluster's and reads
logs only by a place with a good seal: what else stands on a pod is its namespace's to write. What always holds: the
reader's arguments are digits and fixed words, and it runs as the job's own user, whose links lead it nowhere else.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, Final

from kubeslurm.directives import LOG_DIR

SCHEME: Final = "slurm://"
BATCH: Final = "batch"
GONE: Final = 3
"""The reader's exit code where the job has no directory on the node."""
_PLACE: Final = re.compile(r"slurm://([0-9]{1,11})/([a-z0-9.-]{1,253})/([0-9]{1,7})-([0-9]{1,7})\Z")


@dataclass(frozen=True, slots=True)
class Place:
    """Tasks `first` to `last` of a Slurm job, all on `host`."""

    job_id: int
    host: str
    first: int
    last: int

    def __str__(self) -> str:
        return f"{SCHEME}{self.job_id}/{self.host}/{self.first}-{self.last}"

    @property
    def files(self) -> tuple[str, ...]:
        """The names of its files, without `.out`; beside the first task, the batch script's messages."""
        tasks = tuple(str(task) for task in range(self.first, self.last + 1))
        return (*tasks, BATCH) if self.first == 0 else tasks

    @property
    def prefixes(self) -> tuple[str, ...]:
        """What stands before the lines of each file."""
        alone = self.first == self.last
        return tuple("" if alone and name != BATCH else f"[{name}] " for name in self.files)


def of(job_id: int, host: str, place: int, tasks_each: int) -> Place | None:
    """The place of a gang's member; None where it has no node."""
    if not host:
        return None
    first = place * tasks_each
    return Place(job_id, host, first, first + tasks_each - 1)


def parse(text: str) -> Place | None:
    """A place without its seal; None where the text is none."""
    found = _PLACE.match(text)
    if found is None or int(found[3]) > int(found[4]):
        return None
    return Place(int(found[1]), found[2], int(found[3]), int(found[4]))


def seal(text: str, key: bytes, owner: str, pod: str) -> str:
    """The place, sealed for this pod of the object with the uid `owner`."""
    return f"{text}/{_mac(text, key, owner, pod)}"


def opened(text: str, key: bytes, owner: str, pod: str) -> Place | None:
    """The place, if the seal is ours and for this pod."""
    inner, _, mac = text.rpartition("/")
    good = hmac.compare_digest(mac.encode(), _mac(inner, key, owner, pod).encode())
    return parse(inner) if good else None


def unsealed(text: str) -> str:
    """The text without a seal, if it has one."""
    return text if parse(text) else text.rpartition("/")[0]


def _mac(text: str, key: bytes, owner: str, pod: str) -> str:
    message = "\n".join(("kubeslurm logs", owner, pod, text)).encode()
    return hmac.new(key, message, hashlib.sha256).hexdigest()[:40]


def container_id(pod: Mapping[str, Any]) -> str:
    """What the pod's status says; empty where it says nothing."""
    return str(container_status(pod).get("containerID") or "")


def container_status(pod: Mapping[str, Any]) -> Mapping[str, Any]:
    """The status of the pod's only container; empty where there is none."""
    statuses: Sequence[Mapping[str, Any]] = (pod.get("status") or {}).get("containerStatuses") or ({},)
    return statuses[0]


def with_seal(status: Mapping[str, Any], key: bytes, owner: str, pod: str) -> dict[str, Any]:
    """A pod's status as `mirror` made it, the place in it sealed."""
    sealed = deepcopy(dict(status))
    for container in sealed.get("containerStatuses") or ():
        for holder in (container, container["state"].get("terminated") or {}):
            if "containerID" in holder:
                holder["containerID"] = seal(holder["containerID"], key, owner, pod)
    return sealed


_AS_USER: Final = """\
folder=$2 tries=$3 script=$1; shift 3
until [ -d "$folder" ] && [ ! -L "$folder" ]; do
  [ "$((tries--))" -gt 0 ] || exit 3
  sleep 0.5
done
user=$(stat -c %u -- "$folder") && group=$(stat -c %g -- "$folder") || exit 3
# the environment is this container's, and a user may look at that of his own processes
exec env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C \\
  setpriv --reuid="$user" --regid="$group" --clear-groups -- bash -c "$script" logs "$folder" "$@"
"""

_COUNT: Final = """\
cd -- "$1" || exit 3
most=$2; shift 2
for name; do
  if [ -f "$name.out" ]; then tail -n "$most" -- "$name.out" | grep -c ''; else echo 0; fi
done
exit 0
"""

_READ: Final = """\
cd -- "$1" || exit 3
follow=$2 since=$3; shift 3
files=() lines=() at=()
for one; do files+=("${one%%:*}.out"); lines+=("${one#*:}"); done
chunk=196608 last=0 begun=0 idle=0
start() {
  local tries=5 size=$size again count
  at[$1]=0
  if [ "${time%.*}" -lt "$since" ]; then at[$1]=$size; return; fi
  [ -n "${lines[$1]}" ] || return 0
  while :; do
    count=$(tail -n "${lines[$1]}" -- "${files[$1]}" | wc -c)
    again=$(stat -L -c %s -- "${files[$1]}")
    # lines were counted from the end: that must not have moved
    [ "$again" != "$size" ] && [ "$((tries--))" -gt 0 ] || break
    size=$again
  done
  at[$1]=$((again > count ? again - count : 0))
}
give() {
  local size=$size count
  [ "$size" -ge "${at[$1]}" ] || at[$1]=0
  while [ "${at[$1]}" -lt "$size" ]; do
    count=$((size - at[$1] > chunk ? chunk : size - at[$1]))
    printf '%s %s ' "$1" "$time"
    dd if="${files[$1]}" bs=65536 iflag=skip_bytes,count_bytes skip="${at[$1]}" count="$count" status=none \\
      2> /dev/null | base64 -w 0
    echo || exit 0
    at[$1]=$((at[$1] + count)) news=1
  done
}
echo ok
while :; do
  news=0
  mapfile -t said < <(stat -L -c '%f %s %.9Y %n' -- "${files[@]}" 2> /dev/null)
  for line in "${said[@]}"; do
    read -r mode size time name <<< "$line"
    case $mode in 8???) ;; *) continue ;; esac
    for index in "${!files[@]}"; do
      [ "${files[index]}" = "$name" ] || continue
      if [ -z "${at[index]-}" ]; then
        if [ "$begun" = 0 ]; then start "$index"; else at[index]=0; fi
      fi
      give "$index"
    done
  done
  begun=1
  [ "$follow" = 1 ] || exit 0
  if [ "$last" = 1 ]; then
    if [ "$news" = 1 ]; then continue; else exit 0; fi
  fi
  # one line says that no more will be written; the end of the input, that nobody listens
  read -r -t 0.25
  code=$?
  if [ "$code" = 0 ]; then last=1; elif [ "$code" -le 128 ]; then exit 0; fi
  [ "$((idle++ % 40))" -ne 0 ] || echo || exit 0
done
"""


def count_argv(place: Place, lines: int) -> list[str]:
    """Says, line by line, how many lines each file has, up to `lines`."""
    return _argv(_COUNT, place, 0, [str(lines), *place.files])


def read_argv(place: Place, *, follow: bool, since: int, tails: Sequence[int | None], tries: int) -> list[str]:
    """Reads the files: `ok`, then frames (see `log_lines`). `tries`: half seconds to wait for the job's directory.

    `tails`: of each file, so many last lines, None for all. When following, one line of input tells it to end.
    """
    each = [f"{name}:{'' if tail is None else tail}" for name, tail in zip(place.files, tails, strict=True)]
    return _argv(_READ, place, tries, ["1" if follow else "0", str(since), *each])


def _argv(script: str, place: Place, tries: int, rest: list[str]) -> list[str]:
    folder = LOG_DIR.replace("%j", str(place.job_id))
    return ["bash", "-c", _AS_USER, "logs", script, folder, str(tries), *rest]
