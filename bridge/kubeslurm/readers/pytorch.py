"""Reads a PyTorchJob (kubeflow.org/v1) into a JobPlan.

Pure; called by the operator's job loop and by `kubeslurm translate`. What always holds: every field of the spec is used,
or listed in `ignored` because it has no meaning in Slurm, or refused by its path; none is dropped in silence.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from kubeslurm import expansion, launch, material_scripts, names, quantities, requests, run_policy, tenants, times
from kubeslurm.api.nodeset import NodeSet
from kubeslurm.api.pytorchjob import PyTorchJob, ReplicaSpec
from kubeslurm.api.slurmcluster import JobDefaults, Jobs, SlurmCluster
from kubeslurm.api.tenants import Tenant
from kubeslurm.containers import Container
from kubeslurm.errors import InvalidObject, Untranslated
from kubeslurm.expansion import Ref, Word
from kubeslurm.materials import Materials, usable
from kubeslurm.plans import JobPlan, Launcher, RestartPolicy, Role
from kubeslurm.readers import images as image_reader
from kubeslurm.readers import materials as material_reader
from kubeslurm.requests import Request

Raw = Mapping[str, Any]

ROLES: Final = ("Master", "Worker")
PORT_NAME: Final = "pytorchjob-port"
CONTAINER: Final = "pytorch"

_POD_READ = frozenset({"containers", "volumes", "priorityClassName"})
_POD_IGNORED = frozenset(
    [
        "tolerations",
        "hostNetwork",
        "dnsPolicy",
        "restartPolicy",
        "schedulerName",
        "serviceAccountName",
        "serviceAccount",
        "imagePullSecrets",
        "automountServiceAccountToken",
        "enableServiceLinks",
        "terminationGracePeriodSeconds",
        "preemptionPolicy",
    ]
)
_CONTAINER_READ = frozenset(
    {"name", "command", "args", "env", "envFrom", "workingDir", "resources", "ports", "volumeMounts"}
)
_CONTAINER_IGNORED = frozenset(
    [
        "image",
        "imagePullPolicy",
        "livenessProbe",
        "readinessProbe",
        "startupProbe",
        "terminationMessagePath",
        "terminationMessagePolicy",
    ]
)
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
_RESOURCES = frozenset({"cpu", "memory"})
_ENV_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,255}\Z")
_ENV_TAKEN = re.compile(r"(SLURM|SLURMD|SRUN|SBATCH|SALLOC|SCANCEL|SPANK|PMI|PMIX|PYXIS|ENROOT|APPTAINER|SINGULARITY)_")
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,255}\Z")
_JOB_NAME = re.compile(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?\Z")
MAX_TEXT: Final = 100_000


@dataclass(frozen=True, slots=True)
class Replica:
    """What one replica needs."""

    gpus: int
    cpus: int | None
    memory_mib: int | None


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
    policy = _policy(job)
    requests.check_known(job.metadata.annotations)
    roles = _roles(job)
    path = f"spec.pytorchReplicaSpecs.{roles[0].name}.template.spec"
    ignored = _pod_ignored(path, roles[0].template)
    container, cpath = roles[0].template["spec"]["containers"][0], f"{path}.containers[0]"
    materials, unused = material_reader.of_job(job, cluster, roles[0].template, path)
    image, ignored = _image(cluster, cpath, container, (*ignored, *unused))
    chosen = (f"{path}.priorityClassName", roles[0].template["spec"].get("priorityClassName") or "")
    request = requests.read(
        job.metadata.annotations, policy.get("schedulingPolicy"), chosen if chosen[1] else None, cluster, tenant
    )
    ignored = (*ignored, *request.ignored)
    replica = _replica(cpath, container, cluster, request.partition, nodesets)
    launcher, reason = launch.choose(
        _plain_argv(cpath, container), replica.gpus, job.spec.nproc_per_node, job.metadata.annotations
    )
    plan = _plan(
        job,
        cluster,
        tenant,
        defaults,
        policy,
        roles,
        replica,
        launcher,
        reason,
        cpath,
        container,
        ignored,
        attempt,
        materials,
        request,
    )
    return replace(plan, container=image)


def _image(
    cluster: SlurmCluster | None, cpath: str, container: Raw, ignored: tuple[str, ...]
) -> tuple[Container | None, tuple[str, ...]]:
    """The container to run in, and the fields that have no meaning then."""
    image = image_reader.read(cpath, container, cluster.spec.jobs if cluster else Jobs(), _workdir(cpath, container))
    return image, tuple(one for one in ignored if image is None or one != f"{cpath}.image")


def _plan(
    job: PyTorchJob,
    cluster: SlurmCluster | None,
    tenant: Tenant | None,
    defaults: JobDefaults,
    policy: Raw,
    roles: tuple[Role, ...],
    replica: Replica,
    launcher: Launcher,
    reason: str,
    cpath: str,
    container: Raw,
    ignored: tuple[str, ...],
    attempt: int,
    materials: Materials,
    request: Request,
) -> JobPlan:
    per_node = max(1, replica.gpus) if launcher is Launcher.RANK else 1
    nodes = _nodes(roles, request)
    runtime = runtime_names(launcher)
    known = _environment(cpath, container, runtime, materials)
    added = _added_environment(job, launcher, nodes)
    return JobPlan(
        name=job.metadata.name,
        namespace=job.metadata.namespace,
        uid=job.metadata.uid,
        attempt=attempt,
        user=tenant.user if tenant else None,
        partition=request.partition,
        nodes=nodes,
        tasks_per_node=per_node,
        processes_per_task=_processes(job) if launcher is Launcher.POD else 1,
        cpus_per_task=_cpus_per_task(cpath, replica, defaults, per_node),
        memory_mib=_memory(replica, defaults),
        gpus_per_node=replica.gpus,
        time_minutes=_limit(policy, request, defaults),
        launcher=launcher,
        launcher_reason=reason,
        argv=_argv(container, known | dict(added), runtime, materials),
        environment=(*_given(known, runtime), *added),
        workdir=_workdir(cpath, container),
        mpi=defaults.mpi,
        restart_policy=_restart_policy(job, roles),
        backoff_limit=policy.get("backoffLimit"),
        port=_port(cpath, container),
        roles=roles,
        ignored=ignored,
        materials=materials,
        request=request,
    )


def _nodes(roles: tuple[Role, ...], request: Request) -> int:
    nodes = sum(role.replicas for role in roles)
    if request.nodes not in (None, nodes):
        raise Untranslated(requests.path(names.ANNOTATION_NODES), f"{nodes} replicas take {nodes} nodes so far")
    return nodes


def _memory(replica: Replica, defaults: JobDefaults) -> int | None:
    if replica.memory_mib or not defaults.memory_per_node:
        return replica.memory_mib
    return quantities.to_mib(defaults.memory_per_node)


def _limit(policy: Raw, request: Request, defaults: JobDefaults) -> int | None:
    deadline = policy.get("activeDeadlineSeconds")
    return request.limit(None if deadline is None else times.minutes_of(deadline), times.parse_minutes(defaults.time))


def runtime_names(launcher: Launcher) -> tuple[str, ...]:
    """The variables that a task gets when it starts; they win over the user's own, as upstream's do."""
    common = ("MASTER_ADDR", "MASTER_PORT", "RANK", "WORLD_SIZE")
    if launcher is Launcher.RANK:
        return (*common, "LOCAL_RANK", "LOCAL_WORLD_SIZE", "NODE_RANK", "GROUP_RANK")
    return (*common, "PET_MASTER_ADDR", "PET_MASTER_PORT", "PET_NODE_RANK")


def _processes(job: PyTorchJob) -> int:
    """nprocPerNode as a number; what auto and gpu mean only the replica's own launcher knows, upstream counts 1."""
    nproc = job.spec.nproc_per_node or ""
    return int(nproc) if nproc.isdigit() else 1


def _added_environment(job: PyTorchJob, launcher: Launcher, nodes: int) -> tuple[tuple[str, Word], ...]:
    """Upstream's fixed variables; PET_* only where the program is one that reads them as its options."""
    fixed = {"PYTHONUNBUFFERED": "1"}
    if launcher is Launcher.POD:
        fixed |= {"PET_NNODES": str(nodes), "PET_NPROC_PER_NODE": job.spec.nproc_per_node or "auto"}
    return tuple((name, (value,)) for name, value in fixed.items())


def _check_name(job: PyTorchJob) -> None:
    if not _JOB_NAME.match(job.metadata.name):
        raise InvalidObject("metadata.name", f"{job.metadata.name[:80]!r} is no DNS subdomain name")


def _policy(job: PyTorchJob) -> Raw:
    policy = {key: value for key, value in (job.spec.run_policy or {}).items() if value is not None}
    for field in sorted(policy.keys() - _POLICY_READ):
        raise Untranslated(f"spec.runPolicy.{field}", "not supported yet")
    run_policy.read(policy)
    if not isinstance(policy.get("schedulingPolicy", {}), dict):
        raise InvalidObject("spec.runPolicy.schedulingPolicy", "an object is wanted")
    if job.spec.elastic_policy is not None:
        raise Untranslated("spec.elasticPolicy", "not supported yet")
    nproc = job.spec.nproc_per_node
    if nproc not in (None, "auto", "gpu") and not re.match(r"[1-9][0-9]{0,3}\Z", nproc or ""):
        raise Untranslated("spec.nprocPerNode", f"{(nproc or '')[:20]!r}: only auto, gpu or a number is supported yet")
    return policy


def _roles(job: PyTorchJob) -> tuple[Role, ...]:
    """Master first; both must ask for the same, since one Slurm job has one shape (so far)."""
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
    if len(roles) > 1 and _needs(roles[0]) != _needs(roles[1]):
        raise Untranslated("spec.pytorchReplicaSpecs.Worker.template.spec", "differs from Master's; not supported yet")
    return roles


def _role(name: str, spec: ReplicaSpec) -> Role:
    path = f"spec.pytorchReplicaSpecs.{name}.template.spec"
    pod = spec.template.get("spec")
    if not isinstance(pod, dict):
        raise InvalidObject(path, "missing")
    containers = pod.get("containers")
    if not containers:
        raise InvalidObject(f"{path}.containers", "one container is needed")
    if len(containers) > 1:
        raise Untranslated(f"{path}.containers[1]", "a second container can't run in a Slurm job")
    if containers[0].get("name") != CONTAINER:
        raise InvalidObject(f"{path}.containers[0].name", f"must be {CONTAINER!r}")
    return Role(name, spec.replicas, spec.template)


def _needs(role: Role) -> Any:
    return role.template["spec"]


def _pod_ignored(path: str, template: Raw) -> tuple[str, ...]:
    container = template["spec"]["containers"][0]
    ignored = [*_sort_fields(path, template["spec"], _POD_READ, _POD_IGNORED)]
    ignored += _sort_fields(f"{path}.containers[0]", container, _CONTAINER_READ, _CONTAINER_IGNORED)
    ports = enumerate(container.get("ports") or ())
    ignored += [f"{path}.containers[0].ports[{index}]" for index, one in ports if one.get("name") != PORT_NAME]
    return tuple(ignored)


def _sort_fields(path: str, given: Raw, read: frozenset[str], harmless: frozenset[str]) -> list[str]:
    ignored = []
    for field in sorted(given):
        if field in read or given[field] in (None, [], {}, ""):
            continue
        if field not in harmless:
            raise Untranslated(f"{path}.{field}", "not supported yet")
        ignored.append(f"{path}.{field}")
    return ignored


def _replica(
    path: str, container: Raw, cluster: SlurmCluster | None, partition: str | None, nodesets: Sequence[NodeSet]
) -> Replica:
    resources = container.get("resources") or {}
    _sort_fields(f"{path}.resources", resources, frozenset({"limits", "requests"}), frozenset())
    limits, requests = resources.get("limits") or {}, resources.get("requests") or {}
    gpu = _gpu_resource(path, {**requests, **limits}, nodesets)
    name = f"{path}.resources.limits"
    gpus = _quantity(f"{name}[{gpu}]", quantities.to_count, limits.get(gpu, requests.get(gpu))) if gpu else 0
    if gpu and _quantity(f"{path}.resources.requests[{gpu}]", quantities.to_count, requests.get(gpu, gpus)) != gpus:
        raise InvalidObject(f"{path}.resources.requests[{gpu}]", f"differs from the limit of {gpus}")
    cpu = requests.get("cpu", limits.get("cpu"))
    memory = limits.get("memory", requests.get("memory"))
    if cluster and partition and gpus:
        _check_fits(f"{name}[{gpu}]", gpus, cluster, partition, nodesets)
    return Replica(
        gpus=gpus or 0,
        cpus=_quantity(f"{path}.resources.requests.cpu", quantities.to_cpus, cpu),
        memory_mib=_quantity(f"{name}.memory", quantities.to_mib, memory),
    )


def _gpu_resource(path: str, asked: Raw, nodesets: Sequence[NodeSet]) -> str | None:
    known = {one.spec.gpu.resource for one in nodesets if one.spec.gpu} | {"nvidia.com/gpu", "amd.com/gpu"}
    found: str | None = None
    for name in sorted(asked.keys() - _RESOURCES):
        if name not in known:
            if str(asked[name]) != "0":
                raise Untranslated(f"{path}.resources.limits[{name}]", "no such resource in Slurm")
        elif found:
            raise InvalidObject(f"{path}.resources.limits[{name}]", f"a second kind of GPU beside {found}")
        else:
            found = name
    return found


def _quantity(path: str, read: Any, value: Any) -> int | None:
    if value is None:
        return None
    try:
        return int(read(value))
    except ValueError as error:
        raise InvalidObject(path, str(error)) from None


def _check_fits(path: str, gpus: int, cluster: SlurmCluster, partition: str, nodesets: Sequence[NodeSet]) -> None:
    """Of several partitions the largest node counts: Slurm picks the one where the job fits."""
    chosen = [one for one in cluster.spec.partitions if one.name in partition.split(",")]
    members = {name for one in chosen for name in one.node_sets}
    sizes = [one.spec.gpu_count() for one in nodesets if one.metadata.name in members]
    if sizes and gpus > max(sizes):
        raise InvalidObject(path, f"{gpus} GPUs, but a node of partition {partition} has {max(sizes)}")


def _cpus_per_task(path: str, replica: Replica, defaults: JobDefaults, tasks_per_node: int) -> int | None:
    cpus = replica.cpus
    if cpus is None and defaults.cpus_per_gpu and replica.gpus:
        cpus = defaults.cpus_per_gpu * replica.gpus
    return None if cpus is None else max(1, -(-cpus // tasks_per_node))


def _restart_policy(job: PyTorchJob, roles: tuple[Role, ...]) -> RestartPolicy:
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


def _plain_argv(path: str, container: Raw) -> list[str]:
    words = []
    for field in ("command", "args"):
        for index, word in enumerate(container.get(field) or ()):
            words.append(_text(f"{path}.{field}[{index}]", word))
    if container.get("command") and "=" in words[0]:
        raise Untranslated(f"{path}.command[0]", "a program's name can't hold '='")
    return words


def _argv(container: Raw, known: Mapping[str, Word], runtime: Sequence[str], materials: Materials) -> tuple[Word, ...]:
    words = [*(container.get("command") or ()), *(container.get("args") or ())]
    return tuple(_expand(word, known, runtime, materials) for word in words)


def _expand(text: str, known: Mapping[str, Word], runtime: Sequence[str], materials: Materials) -> Word:
    """A name that nothing here knows may still be one of envFrom's."""
    unknown = expansion.references(text) - known.keys() if materials.every else frozenset()
    late = {name: (Ref(material_scripts.ALL + name),) for name in unknown if _IDENTIFIER.match(name)}
    return expansion.expand(text, {**known, **late}, runtime)


def _environment(path: str, container: Raw, runtime: Sequence[str], materials: Materials) -> dict[str, Word]:
    """Each variable's value; of one that materials give, a reference to where the task will have it."""
    known: dict[str, Word] = {}
    for index, one in enumerate(container.get("env") or ()):
        where = f"{path}.env[{index}]"
        name = one["name"]
        _check_env_name(f"{where}.name", name)
        if name == "CUDA_VISIBLE_DEVICES":
            raise Untranslated(f"{where}.name", "CUDA_VISIBLE_DEVICES is set by Slurm")
        if not one.get("valueFrom"):
            known[name] = _expand(_text(f"{where}.value", one.get("value") or ""), known, runtime, materials)
        elif material_reader.variable(where, one):
            known[name] = (Ref(material_scripts.CHOSEN + name),)
        else:
            raise Untranslated(f"{where}.valueFrom", "not supported yet")
        if material_scripts.late(known[name]) and not usable(name):
            raise Untranslated(f"{where}.name", f"{name[:40]!r} can't hold what a ConfigMap or Secret gives")
    return known


def _given(known: Mapping[str, Word], runtime: Sequence[str]) -> tuple[tuple[str, Word], ...]:
    """What the script sets; what materials give as it is, a task takes from them."""
    return tuple(
        (name, value)
        for name, value in known.items()
        if name not in runtime and name != "PYTHONUNBUFFERED" and value != (Ref(material_scripts.CHOSEN + name),)
    )


def _check_env_name(path: str, name: str) -> None:
    if not _ENV_NAME.match(name):
        raise InvalidObject(path, f"{name[:40]!r} is no name of a variable")
    if _ENV_TAKEN.match(name):
        raise InvalidObject(path, f"{name[:40]!r} belongs to Slurm")


def _text(path: str, value: Any) -> str:
    if not isinstance(value, str):
        raise InvalidObject(path, "text is wanted")
    if "\0" in value or len(value) > MAX_TEXT:
        raise InvalidObject(path, f"NUL, or more than {MAX_TEXT} characters")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise InvalidObject(path, "not valid Unicode") from None
    return value


def _workdir(path: str, container: Raw) -> str | None:
    text = container.get("workingDir")
    if text in (None, ""):
        return None
    directory = _text(f"{path}.workingDir", text)
    if not directory.startswith("/") or not re.match(r"[A-Za-z0-9_./+@=-]{1,1024}\Z", directory):
        raise InvalidObject(f"{path}.workingDir", "an absolute path of plain characters is wanted")
    return directory


def _port(path: str, container: Raw) -> int | None:
    for index, one in enumerate(container.get("ports") or ()):
        if one.get("name") == PORT_NAME:
            port = one.get("containerPort")
            if port is None:
                raise InvalidObject(f"{path}.ports[{index}].containerPort", "missing")
            return int(port)
    return None
