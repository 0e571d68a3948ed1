"""Reads a PyTorchJob (kubeflow.org/v1) into a JobPlan.

Pure; called by the operator's job loop and by `kubeslurm translate`. What always holds: every field of the spec is used,
or listed in `ignored` because it has no meaning in Slurm, or refused by its path; none is dropped in silence.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from kubeslurm import launch, requests, run_policy, task_facts, tenants, times
from kubeslurm.api.nodeset import NodeSet
from kubeslurm.api.pytorchjob import PyTorchJob, ReplicaSpec
from kubeslurm.api.slurmcluster import Jobs, SlurmCluster
from kubeslurm.api.tenants import Tenant
from kubeslurm.containers import Container
from kubeslurm.errors import InvalidObject, Untranslated
from kubeslurm.expansion import Ref, Word
from kubeslurm.materials import Materials
from kubeslurm.plans import Elastic, JobPlan, Launcher, Program, RestartPolicy, Role, Shape
from kubeslurm.readers import elastic as elastic_reader
from kubeslurm.readers import images as image_reader
from kubeslurm.readers import materials as material_reader
from kubeslurm.readers import pods, texts, variables
from kubeslurm.readers import shapes as shape_reader
from kubeslurm.readers.downward import PodFacts
from kubeslurm.readers.shapes import Need, Pool
from kubeslurm.readers.variables import Reader
from kubeslurm.requests import Request

Raw = Mapping[str, Any]

ROLES: Final = ("Master", "Worker")
PORT_NAME: Final = pods.PORT_NAME
CONTAINER: Final = pods.CONTAINER

_POLICY_READ = frozenset(
    {
        "activeDeadlineSeconds",
        "backoffLimit",
        "managedBy",
        "cleanPodPolicy",
        "schedulingPolicy",
        "suspend",
        "ttlSecondsAfterFinished",
    }
)
_JOB_NAME = re.compile(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?\Z")
_NPROC = re.compile(r"[1-9][0-9]{0,3}\Z")


def read_pytorchjob(
    job: PyTorchJob,
    cluster: SlurmCluster | None = None,
    nodesets: Sequence[NodeSet] = (),
    *,
    attempt: int = 1,
    labels: Mapping[str, str] | None = None,
) -> JobPlan:
    """The plan. Without a cluster there is no user, no partition and no default; `cluster` names the tenant's.

    `labels` are those of the job's namespace, by which a tenant may claim it; None where they are not known.
    """
    _check_name(job)
    tenant = tenants.tenant_for(cluster, job.metadata.namespace, labels) if cluster else None
    defaults = requests.defaults(cluster, tenant)
    policy, roles = _policy(job), _roles(job)
    asked = _requested(job, policy, roles, cluster, tenant)
    pool = Pool(cluster, asked.partition, nodesets, defaults)
    needs = [shape_reader.need(role, pool) for role in roles]
    elastic = elastic_reader.read(job, roles, attempt)
    launcher, reason = _launcher(job, needs, elastic)
    shapes = shape_reader.shapes(needs, launcher, asked, pool, elastic)
    run = _run(job, needs, cluster, launcher, shapes, elastic)
    return JobPlan(
        name=job.metadata.name,
        namespace=job.metadata.namespace,
        uid=job.metadata.uid,
        attempt=attempt,
        user=tenant.user if tenant else None,
        partition=asked.partition,
        shapes=shapes,
        programs=run.programs,
        processes_per_task=_processes(job) if launcher is Launcher.POD else 1,
        time_minutes=_limit(policy, asked, times.parse_minutes(defaults.time)),
        launcher=launcher,
        launcher_reason=reason,
        mpi=defaults.mpi,
        restart_policy=_restart_policy(job, roles),
        backoff_limit=policy.get("backoffLimit"),
        port=_port(needs[0], elastic),
        roles=roles,
        ignored=(*_ignored(needs, run, tenant), *asked.ignored),
        notes=(*shape_reader.notes(needs, shapes), *elastic_reader.notes(job), *run.notes()),
        materials=run.materials,
        container=run.container,
        request=asked,
        elastic=elastic,
        ranked=_ranked(roles, elastic),
    )


def _ranked(roles: Sequence[Role], elastic: Elastic | None) -> bool:
    """Upstream tells the ranks where there is a Master; of an elastic job without one, torchrun's agents agree on them."""
    return elastic is None or roles[0].name == "Master"


@dataclass(frozen=True, slots=True)
class _Run:
    """What the roles run, and in which container with what brought to it. `unused` fields of materials have no meaning."""

    materials: Materials
    container: Container | None
    unused: tuple[str, ...]
    readers: tuple[Reader, ...]
    programs: tuple[Program, ...]

    def notes(self) -> Iterator[str]:
        """Where a name that only Kubernetes' DNS knows was replaced."""
        words = [one for program in self.programs for one in program.words]
        if any(reader.names_first() for reader in self.readers) and any(Ref("MASTER_ADDR") in word for word in words):
            yield f"{self.readers[0].first} replaced by its address in Slurm"


def _run(
    job: PyTorchJob,
    needs: Sequence[Need],
    cluster: SlurmCluster | None,
    launcher: Launcher,
    shapes: Sequence[Shape],
    elastic: Elastic | None,
) -> _Run:
    materials, container, unused = _materials(job, needs, cluster, shapes)
    roles = [one.role for one in needs]
    runtime = runtime_names(launcher, ranked=_ranked(roles, elastic))
    first = f"{job.metadata.name}-{roles[0].name.lower()}-0"
    readers = tuple(Reader(one.path, _facts(job, one), runtime, materials, first) for one in needs)
    return _Run(materials, container, unused, readers, _programs(job, readers, launcher, shapes, elastic))


def _facts(job: PyTorchJob, one: Need) -> PodFacts:
    template = one.role.template
    return PodFacts(job.metadata.name, job.metadata.namespace, template, template["spec"]["containers"][0])


def _requested(
    job: PyTorchJob, policy: Raw, roles: Sequence[Role], cluster: SlurmCluster | None, tenant: Tenant | None
) -> Request:
    path, found = f"spec.pytorchReplicaSpecs.{roles[0].name}.template.spec.priorityClassName", None
    classes = {role.template["spec"].get("priorityClassName") or "" for role in roles}
    if len(classes) > 1:
        raise Untranslated(path.replace(".Master.", ".Worker."), "differs from Master's; a gang waits in one queue")
    if name := classes.pop():
        found = (path, name)
    return requests.read(job.metadata.annotations, policy.get("schedulingPolicy"), found, cluster, tenant)


def _launcher(job: PyTorchJob, needs: Sequence[Need], elastic: Elastic | None) -> tuple[Launcher, str]:
    """One for all roles; elastic jobs leave the ranks to torchrun."""
    chosen = []
    for one in needs:
        words = Reader(one.path, _facts(job, one), (), Materials(), "").plain_argv()
        gpus = 1 if elastic else one.replica.gpus
        chosen.append(launch.choose(words, gpus, job.spec.nproc_per_node, job.metadata.annotations))
    if len({launcher for launcher, _ in chosen}) > 1:
        raise Untranslated(
            f"{needs[1].path}.command", "is launched in another way than Master's: annotate which is meant"
        )
    if elastic and chosen[0][0] is Launcher.RANK:
        raise Untranslated(elastic_reader.PATH, "the launcher rank starts a fixed number of ranks")
    return chosen[0]


def _materials(
    job: PyTorchJob, needs: Sequence[Need], cluster: SlurmCluster | None, shapes: Sequence[Shape]
) -> tuple[Materials, Container | None, tuple[str, ...]]:
    """One for all: what is brought to a node is for whichever replica runs there."""
    found = []
    for one in needs:
        pod = one.path.removesuffix(".containers[0]")
        materials, unused = material_reader.of_job(job, cluster, one.role.template, pod)
        container = one.role.template["spec"]["containers"][0]
        jobs = cluster.spec.jobs if cluster else Jobs()
        image = image_reader.read(one.path, container, jobs, texts.workdir(one.path, container))
        found.append((materials, image, unused))
    if len(found) > 1:
        _check_alike(needs[1].path, found[0][0] == found[1][0], found[0][1] == found[1][1])
    if len(shapes) > 1 and found[0][0] != Materials():
        raise Untranslated(
            needs[0].path, "ConfigMaps, Secrets and volumes need Master and Worker to ask for the same nodes"
        )
    return found[0][0], found[0][1], tuple(dict.fromkeys(path for one in found for path in one[2]))


def _check_alike(path: str, materials: bool, image: bool) -> None:
    if not materials:
        raise Untranslated(path, "its ConfigMaps, Secrets and volumes differ from Master's")
    if not image:
        raise Untranslated(f"{path}.image", "differs from Master's, or its workingDir does")


def _programs(
    job: PyTorchJob, readers: Sequence[Reader], launcher: Launcher, shapes: Sequence[Shape], elastic: Elastic | None
) -> tuple[Program, ...]:
    """What each role runs; one program where they run the same on equal nodes."""
    roles = [role for shape in shapes for role in shape.roles]
    replicas = sum(shape.replicas for shape in shapes)
    found = []
    for number, (role, reader) in enumerate(zip(roles, readers, strict=True)):
        shape = shapes[min(number, len(shapes) - 1)]
        added = _added_environment(job, launcher, replicas, shape, elastic)
        known = reader.environment()
        argv, environment = reader.argv(known | dict(added)), (*variables.given(known, reader.runtime), *added)
        found.append(Program((role,), argv, environment, texts.workdir(reader.path, reader.facts.container)))
    if len(shapes) == 1 and len({replace(one, roles=()) for one in found}) == 1:
        return (replace(found[0], roles=tuple(roles)),)
    return tuple(found)


def _limit(policy: Raw, request: Request, default: int | None) -> int | None:
    deadline = policy.get("activeDeadlineSeconds")
    return request.limit(None if deadline is None else times.minutes_of(deadline), default)


def runtime_names(launcher: Launcher, *, ranked: bool = True) -> tuple[str, ...]:
    """The variables that a task gets when it starts; they win over the user's own, as upstream's do."""
    meeting = ("MASTER_ADDR", "MASTER_PORT")
    ranks = ("RANK", "WORLD_SIZE") if ranked else ()
    if launcher is Launcher.RANK:
        return (*meeting, *ranks, "LOCAL_RANK", "LOCAL_WORLD_SIZE", "NODE_RANK", "GROUP_RANK")
    node = ("PET_NODE_RANK",) if ranked else ()
    return (*meeting, *ranks, "PET_MASTER_ADDR", "PET_MASTER_PORT", *node)


def _processes(job: PyTorchJob) -> int:
    """nprocPerNode as a number; what auto and gpu mean only the replica's own launcher knows, upstream counts 1."""
    nproc = job.spec.nproc_per_node or ""
    return int(nproc) if nproc.isdigit() else 1


def _added_environment(
    job: PyTorchJob, launcher: Launcher, replicas: int, shape: Shape, elastic: Elastic | None
) -> tuple[tuple[str, Word], ...]:
    """Upstream's fixed variables; PET_* only where the program is one that reads them as its options."""
    fixed: dict[str, Word] = {"PYTHONUNBUFFERED": ("1",)}
    if launcher is Launcher.POD:
        nodes: Word = (f"{elastic.least}:", Ref(task_facts.NODES)) if elastic else (str(replicas),)
        fixed |= {"PET_NNODES": nodes, "PET_NPROC_PER_NODE": (_nproc(job, shape),)}
    if elastic is not None:
        fixed |= _rendezvous(elastic)
    return tuple(fixed.items())


def _nproc(job: PyTorchJob, shape: Shape) -> str:
    """torchrun would count all CPUs of the node, where only some of them are the task's."""
    nproc = job.spec.nproc_per_node or (job.spec.elastic_policy or {}).get("nProcPerNode")
    if shape.cpus_per_task and (nproc == "cpu" or (nproc in (None, "auto") and not shape.gpus_per_replica)):
        return str(shape.cpus_per_task)
    return str(nproc or "auto")


def _rendezvous(elastic: Elastic) -> dict[str, Word]:
    """c10d on the first node. Which node that is, torchrun would guess by names, and those mean nothing here."""
    conf = "".join(f",{key}={value}" for key, value in elastic.conf)
    found: dict[str, Word] = {
        "PET_RDZV_BACKEND": ("c10d",),
        "PET_RDZV_ENDPOINT": (Ref("MASTER_ADDR"), ":", Ref("MASTER_PORT")),
        "PET_RDZV_ID": (elastic.rdzv_id,),
        "PET_RDZV_CONF": ("is_host=", Ref(task_facts.HOSTS), conf) if conf else ("is_host=", Ref(task_facts.HOSTS)),
        "PET_LOCAL_ADDR": (Ref(task_facts.ADDRESS),),
    }
    if elastic.max_restarts is not None:
        found["PET_MAX_RESTARTS"] = (str(elastic.max_restarts),)
    if elastic.standalone:
        found["PET_STANDALONE"] = ("1",)
    return found


def _check_name(job: PyTorchJob) -> None:
    if not _JOB_NAME.match(job.metadata.name):
        raise InvalidObject("metadata.name", f"{job.metadata.name[:80]!r} is no DNS subdomain name")


def _policy(job: PyTorchJob) -> Raw:
    requests.check_known(job.metadata.annotations)
    policy = {key: value for key, value in (job.spec.run_policy or {}).items() if value is not None}
    for field in sorted(policy.keys() - _POLICY_READ):
        raise Untranslated(f"spec.runPolicy.{field}", "not supported")
    run_policy.read(policy)
    if not isinstance(policy.get("schedulingPolicy", {}), dict):
        raise InvalidObject("spec.runPolicy.schedulingPolicy", "an object is wanted")
    _check_nproc("spec.nprocPerNode", job.spec.nproc_per_node)
    old = (job.spec.elastic_policy or {}).get("nProcPerNode")
    if old is not None:
        _check_nproc(f"{elastic_reader.PATH}.nProcPerNode", str(old))
        if job.spec.nproc_per_node is not None:
            raise InvalidObject(f"{elastic_reader.PATH}.nProcPerNode", "stands beside spec.nprocPerNode")
    return policy


def _check_nproc(path: str, nproc: str | None) -> None:
    if nproc not in (None, "auto", "gpu", "cpu") and not _NPROC.match(nproc or ""):
        raise InvalidObject(path, f"{(nproc or '')[:20]!r} is neither auto, gpu, cpu nor a number")


def _roles(job: PyTorchJob) -> tuple[Role, ...]:
    """Master first."""
    found: dict[str, ReplicaSpec] = {}
    for key, spec in job.spec.pytorch_replica_specs.items():
        name = key.capitalize()
        if name not in ROLES or name in found:
            raise InvalidObject(
                f"spec.pytorchReplicaSpecs.{key}", "only one Master and one Worker entry can stand here"
            )
        found[name] = spec
    if "Master" in found and found["Master"].replicas != 1:
        raise InvalidObject("spec.pytorchReplicaSpecs.Master.replicas", "must be 1")
    roles = tuple(_role(name, found[name]) for name in ROLES if name in found and found[name].replicas)
    if not roles:
        raise InvalidObject("spec.pytorchReplicaSpecs", "no replica is asked for")
    return roles


def _role(name: str, spec: ReplicaSpec) -> Role:
    pods.check(f"spec.pytorchReplicaSpecs.{name}.template.spec", spec.template.get("spec"))
    return Role(name, spec.replicas, spec.template)


def _ignored(needs: Sequence[Need], run: _Run, tenant: Tenant | None) -> tuple[str, ...]:
    """Each field once: those of Worker only where Master does not have them."""
    found: dict[str, str] = {}
    for one, reader in zip(needs, run.readers, strict=True):
        pod = one.path.removesuffix(".containers[0]")
        user = (tenant.user.uid, tenant.user.gid) if tenant else None
        fields = [*pods.ignored(pod, one.role.template["spec"], user), *one.ignored, *reader.ignored()]
        for path in (*fields, *(path for path in run.unused if path.startswith(f"{pod}."))):
            if run.container is None or path != f"{one.path}.image":
                found.setdefault(path.removeprefix(pod), path)
    return tuple(found.values())


def _restart_policy(job: PyTorchJob, roles: Sequence[Role]) -> RestartPolicy:
    found = set()
    for key, spec in job.spec.pytorch_replica_specs.items():
        text = spec.restart_policy or RestartPolicy.ON_FAILURE
        if text not in list(RestartPolicy):
            raise InvalidObject(f"spec.pytorchReplicaSpecs.{key}.restartPolicy", f"{text[:40]!r} is no restart policy")
        if key.capitalize() in {role.name for role in roles}:
            found.add(RestartPolicy(text))
    if len(found) > 1:
        raise Untranslated(
            "spec.pytorchReplicaSpecs.Worker.restartPolicy", "differs from Master's; a gang restarts whole"
        )
    return found.pop()


def _port(one: Need, elastic: Elastic | None) -> int | None:
    """Where the ranks meet, if the job says."""
    port = pods.port(one.path, one.role.template["spec"]["containers"][0])
    return elastic.port if elastic and elastic.port else port
