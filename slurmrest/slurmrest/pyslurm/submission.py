"""Descriptions of jobs to submit, and of changes to jobs: pyslurm's `JobSubmitDescription`.

Used by scripts as `pyslurm.JobSubmitDescription`. What always holds: a value that can't be is refused with the field's
name before anything is sent, and a field that the API version lacks too; nothing is left out. Memory is MiB, a plain
number of time is minutes, as with sbatch. Source: sbatch(1), and the REST API's job_desc_msg.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime
from pathlib import Path
from typing import Any, Final, TypeAlias

from slurmrest.pyslurm import _description as description
from slurmrest.pyslurm import _session
from slurmrest.pyslurm._job_environment import variables
from slurmrest.pyslurm.error import PyslurmError
from slurmrest.pyslurm.task_dist import TaskDistribution
from slurmrest.sbatch import BadScript, check_script

Texts: TypeAlias = Iterable[str] | str
Size: TypeAlias = int | str
"""MiB, or text with a unit: "10G"."""
Counts: TypeAlias = Mapping[str, int] | str | int
Ranges: TypeAlias = Mapping[str, int] | str | int
Date: TypeAlias = int | str | datetime
"""Seconds since 1970, or what `sbatch --begin` takes."""

_PREFIX: Final = "PYSLURM_JOBDESC_"
_TRUTH: Final = {"True": True, "False": False}
_APART: Final = frozenset({"is_update", "script", "script_args", "environment", "get_user_environment", "_more"})
"""Fields that `_description` does not write."""
_ONLY_CHANGED: Final = ("site_factor", "admin_comment")
_NEVER_CHANGED: Final = (
    *("script", "script_args", "environment", "get_user_environment", "accounting_gather_frequency", "container"),
    *("container_id", "cpu_frequency", "gres_binding", "kill_on_invalid_dependency", "kill_on_node_fail"),
    *("log_files_open_mode", "ntasks_per_core", "profile_types", "reserved_ports", "segment_size", "selinux_context"),
    *("signal", "spreads_over_nodes", "use_min_nodes", "wait_all_nodes"),
)
"""What slurmctld takes in a change and leaves as it is (24.11.5, 26.05.5), without a word."""
_THROTTLE: Final = re.compile(r"%(\d{1,9})")
_STREAMS: Final = ("standard_in", "standard_output", "standard_error")
_OWNER: Final = "JobSubmitDescription"


@dataclass(slots=True, kw_only=True)
class JobSubmitDescription:
    """A job to `submit`, or changes for `Job.modify`. A field that is None isn't sent: Slurm's own default holds.

    The environment is this process's, and the working directory the current one, unless they are given. Reading a field
    gives what was set.
    """

    is_update: bool = False
    """Does it describe changes? Such a description can't be submitted."""
    name: str | None = None
    account: str | None = None
    user_id: str | int | None = None
    """Run it as this user; root's right."""
    group_id: str | int | None = None
    """Run it as this group; root's right. A name must be known on this machine."""
    priority: int | str | None = None
    """0 holds the job."""
    site_factor: int | None = None
    """For changes only."""
    wckey: str | None = None
    array: Iterable[int | str] | str | None = None
    """Such as "0-15%4". Of a job that is there only "%4" can be changed."""
    batch_constraints: Texts | None = None
    begin_time: Date | None = None
    clusters: Texts | None = None
    """Clusters of a federation. The job goes to the one that slurmrestd serves, which has to be among them."""
    cluster_constraints: Texts | None = None
    comment: str | None = None
    admin_comment: str | None = None
    """For changes only."""
    requires_contiguous_nodes: bool | None = None
    cores_reserved_for_system: int | None = None
    threads_reserved_for_system: int | None = None
    working_directory: str | None = None
    cpu_frequency: Mapping[str, str | int] | str | int | None = None
    """{"min": "Low", "max": "High", "governor": "OnDemand"}, or "low-high:OnDemand"."""
    nodes: Ranges | None = None
    """A count, "1-5", or {"min": 1, "max": 5}."""
    deadline: Date | None = None
    delay_boot_time: int | str | None = None
    dependencies: Mapping[str, Any] | str | None = None
    """{"afterok": [1, 2], "afterany": [3], "singleton": True, "satisfy": "any"}, or "afterok:1:2"."""
    excluded_nodes: Texts | None = None
    required_nodes: Texts | None = None
    constraints: Texts | None = None
    kill_on_node_fail: bool | None = None
    licenses: Mapping[str, int] | Texts | None = None
    mail_user: Texts | None = None
    mail_types: Texts | None = None
    mcs_label: str | None = None
    memory_per_cpu: Size | None = None
    memory_per_node: Size | None = None
    memory_per_gpu: Size | None = None
    network: str | None = None
    nice: int | None = None
    log_files_open_mode: str | None = None
    """"append" or "truncate"."""
    overcommit: bool | None = None
    partitions: Texts | None = None
    profile_types: Texts | None = None
    """"energy", "lustre", "network", "task", "all" or "none"."""
    accounting_gather_frequency: Mapping[str, int] | str | int | None = None
    """{"energy": 60, "network": 20} in seconds, or "energy=60,network=20"."""
    qos: str | None = None
    requires_node_reboot: bool | None = None
    is_requeueable: bool | None = None
    reservations: Texts | None = None
    script: str | os.PathLike[str] | None = field(default=None, repr=False)
    """The script's text, beginning with `#!`, or the path of a file with it."""
    script_args: Iterable[str] | str | None = None
    """The arguments of a script that was given as a path: a list, or text with a shell's quotes."""
    environment: Mapping[str, str | int] | str | None = field(default=None, repr=False)
    """Variables, or what `sbatch --export` takes; by default all of this process but SLURM_JWT."""
    resource_sharing: str | None = None
    """"oversubscribe" or "yes", "user", "mcs", "topo", "no" or "exclusive"."""
    distribution: str | TaskDistribution | None = None
    """Needs API v0.0.41."""
    time_limit: int | str | None = None
    """Minutes, "1-12:00:00" or "UNLIMITED"."""
    time_limit_min: int | str | None = None
    container: str | None = None
    container_id: str | None = None
    cpus_per_task: int | None = None
    cpus_per_gpu: int | None = None
    sockets_per_node: int | None = None
    cores_per_socket: int | None = None
    """Needs API v0.0.45 (or v0.0.40)."""
    threads_per_core: int | None = None
    gpus: Counts | None = None
    """In all: 6, {"tesla": 1, "volta": 5} or "tesla:1,volta:5"."""
    gpus_per_socket: Counts | None = None
    gpus_per_task: Counts | None = None
    gres_per_node: Mapping[str, int] | Texts | None = None
    """{"gpu:tesla": 1, "shard": 2}, or "gpu:tesla:1,shard:2"."""
    gpu_binding: str | None = None
    ntasks: int | None = None
    ntasks_per_node: int | None = None
    ntasks_per_socket: int | None = None
    ntasks_per_core: int | None = None
    ntasks_per_gpu: int | None = None
    switches: Mapping[str, int | str] | str | int | None = None
    """{"count": 5, "max_wait_time": "00:10:00"}, or "5@00:10:00"."""
    signal: Mapping[str, str | int | bool] | str | int | None = None
    """{"signal": "USR1", "time": 120, "batch_only": True}, or "B:USR1@120": the seconds before the time limit."""
    standard_in: str | None = None
    standard_output: str | None = None
    standard_error: str | None = None
    kill_on_invalid_dependency: bool | None = None
    spreads_over_nodes: bool | None = None
    use_min_nodes: bool | None = None
    gres_binding: str | None = None
    """"enforce-binding" or "disable-binding"."""
    gres_tasks_per_sharing: str | None = None
    """"multiple" or "one": no version of the REST API takes it."""
    temporary_disk_per_node: Size | None = None
    get_user_environment: bool | int | str | None = None
    """True: have slurmd load the user's login environment. A time to wait for it can't be told over REST."""
    min_cpus_per_node: int | str | None = None
    wait_all_nodes: bool | None = None
    selinux_context: str | None = None
    segment_size: int | None = None
    """Needs API v0.0.41."""
    reserved_ports: int | None = None
    extra: str | None = None
    _more: dict[str, Any] = field(default_factory=dict, init=False, repr=False)
    """Fields of the request for options of sbatch that have no attribute here; set by `load_sbatch_options`."""

    def submit(self, key: str | None = None) -> int:
        """Submit the job; gives its id.

        With a `key`, which pyslurm doesn't have, once per key and user, whatever is lost on the way: the job's comment is
        its place then. Without, one request is sent. Raises ValueError or TypeError for what can't be, PyslurmError for
        what this API version can't carry, RPCError for what Slurm refuses, of number 1003 when the answer is lost: there
        may be a job then.
        """
        if key is not None and self.user_id is not None:
            raise ValueError(f"{_OWNER}.user_id: a key is the connection's user's; connect as the other user instead")
        body = self._request(_session.api_version())
        with _session.slurm_errors():
            return _session.session().submit(body["job"], body["script"], key=key).job_id

    def load_environment(self, overwrite: bool = False) -> None:
        """Set fields from variables: PYSLURM_JOBDESC_NAME sets `name`, and so on; "True" and "False" stand for bools.

        A field that is set already stays as it is unless `overwrite`. Raises ValueError for a variable of no field.
        """
        kinds = {one.name: str(one.type) for one in fields(self) if one.name not in ("is_update", "_more")}
        for variable in sorted(os.environ):
            name = variable.removeprefix(_PREFIX).lower()
            if variable == name or not variable.startswith(_PREFIX):
                continue
            if name not in kinds:
                raise ValueError(f"{variable}: a {_OWNER} has no field {name!r:.80}")
            value = os.environ[variable]
            if kinds[name] == "bool | None" and value not in _TRUTH:
                raise ValueError(f"{variable} is {value!r:.80}, neither True nor False")
            self._set(name, _TRUTH.get(value, value) if "bool" in kinds[name] else value, overwrite)

    def load_sbatch_options(self, overwrite: bool = False) -> None:
        """Set fields from the script's `#SBATCH` lines and, winning over those, from SBATCH_* variables.

        A field that is set already stays as it is unless `overwrite`. Raises ValueError for what sbatch would refuse, and
        PyslurmError for an option that can't be carried over; each names the line.
        """
        from slurmrest.pyslurm._sbatch_fields import fields_of

        if self.script is None:
            raise ValueError(f"{_OWNER}.script isn't set: there are no options to read")
        values, more = fields_of(self._script()[0], os.environ)
        for name, value in values.items():
            self._set(name, value, overwrite)
        self._more = more

    def _set(self, name: str, value: Any, overwrite: bool) -> None:
        if overwrite or getattr(self, name) is None:
            setattr(self, name, value)

    def _request(self, version: str) -> dict[str, Any]:
        """The body of a submission."""
        if self.is_update:
            raise ValueError(f"{_OWNER}.is_update: changes can't be submitted")
        for name in _ONLY_CHANGED:
            if getattr(self, name) is not None:
                raise ValueError(f"{_OWNER}.{name} is for changes of a job only")
        script, path = self._script()
        values = self._values()
        values["working_directory"] = os.getcwd() if self.working_directory is None else self.working_directory
        values["name"] = self.name or (Path(path).name if path else "sbatch")
        for name in _STREAMS:
            values[name] = _stream(name, values[name], values["working_directory"])
        job = self._described(values, version)
        arguments = self._arguments(path)
        if arguments:
            job["argv"] = arguments
        try:
            job["environment"] = variables(self.environment, self._user_environment(), job)
        except (TypeError, ValueError) as error:
            raise type(error)(f"{_OWNER}.environment: {error}") from error
        return {"script": script, "job": job}

    def _changes(self, version: str) -> dict[str, Any]:
        """The body of a change of a job."""
        for name in _NEVER_CHANGED:
            if getattr(self, name) is not None:
                raise PyslurmError(f"{_OWNER}.{name} can't be changed: it is set for good at submission")
        values = self._values()
        if self.array is not None:
            values["array"] = _throttle(self.array)
        job = self._described(values, version)
        if not job:
            raise ValueError(f"the {_OWNER} holds no change")
        return job

    def _values(self) -> dict[str, Any]:
        return {one.name: getattr(self, one.name) for one in fields(self) if one.name not in _APART}

    def _described(self, values: dict[str, Any], version: str) -> dict[str, Any]:
        if values.pop("gres_tasks_per_sharing") is not None:
            raise _session.impossible(f"{_OWNER}.gres_tasks_per_sharing", "sbatch --gres-flags does")
        description.check_together((name for name, value in values.items() if value is not None), _OWNER)
        # An explicit binding wins over the one that comes with GPUs per task.
        values["gpu_binding"] = values.pop("gpu_binding")
        job = description.describe(values, version, _OWNER)
        self._check_clusters(job)
        description.merge(job, self._more)
        return job

    def _check_clusters(self, job: Mapping[str, Any]) -> None:
        """slurmctld takes any name here without a federation, and runs the job all the same."""
        names = str(job.get("clusters") or "").split(",")
        local = _session.ask_local_cluster() if names != [""] else ""
        if local and local not in names and names != ["all"]:
            raise PyslurmError(f"{_OWNER}.clusters: slurmrestd serves {local}, which is not among them")

    def _script(self) -> tuple[str, str]:
        """The script's text, and its path if it was given by one."""
        given = self.script
        if given is None:
            raise ValueError(f"{_OWNER}.script isn't set")
        if isinstance(given, str) and (given.startswith("#!") or "\n" in given or not given.strip()):
            text, path = given, ""
        elif isinstance(given, (str, os.PathLike)):
            path = os.fspath(given)
            try:
                text = Path(path).read_text()
            except (OSError, ValueError) as error:
                raise ValueError(f"{_OWNER}.script: {path!r:.200} can't be read: {error}") from error
        else:
            raise TypeError(f"{_OWNER}.script: expected text or a path, got {type(given).__name__}")
        try:
            check_script(text)
        except BadScript as error:
            raise ValueError(f"{_OWNER}.script: {error}") from error
        return text, path

    def _arguments(self, path: str) -> list[str]:
        """argv, whose first word slurmstepd replaces."""
        if self.script_args is None:
            return []
        if not path:
            raise ValueError(f"{_OWNER}.script_args: only a script that is given as a path may have arguments")
        try:
            words = shlex.split(self.script_args) if isinstance(self.script_args, str) else list(self.script_args)
        except ValueError as error:
            raise ValueError(f"{_OWNER}.script_args: {error}") from error
        if any(not isinstance(word, str) or "\0" in word for word in words):
            raise ValueError(f"{_OWNER}.script_args: an argument is text without NUL")
        return [path, *words]

    def _user_environment(self) -> bool | None:
        given = self.get_user_environment
        if given is None or isinstance(given, bool):
            return given
        raise _session.impossible(f"{_OWNER}.get_user_environment: a time or mode of loading", "True is taken")


def _throttle(array: Any) -> str:
    """How many tasks of an array may run at once: all that can be changed of it. slurmctld takes text before it for 0."""
    found = _THROTTLE.fullmatch(array) if isinstance(array, str) else None
    if not found:
        raise ValueError(f'{_OWNER}.array: of an array only the tasks that run at once can be changed, as "%4"')
    return found[1]


def _stream(name: str, path: Any, folder: str) -> Any:
    """The path as sbatch sends it: from the root, and /dev/null for "none" and for an input that isn't given."""
    if path is None:
        return "/dev/null" if name == "standard_in" else None
    if not isinstance(path, str) or not path:
        return path  # refused later, with the field's name
    return "/dev/null" if path.lower() == "none" else os.path.join(str(folder), path)
