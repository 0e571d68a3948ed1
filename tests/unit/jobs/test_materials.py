"""ConfigMaps, Secrets and volumes: what is read of them, what a node gets, and what a task makes of it."""

from __future__ import annotations

import base64
import contextlib
import io
import subprocess
import tarfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kubeslurm import materials
from kubeslurm.errors import InvalidObject
from kubeslurm.materials import Materials, Source
from kubeslurm.plans import JobPlan
from kubeslurm.readers.pytorch import read_pytorchjob
from kubeslurm.scripts import write_script
from tests.unit import examples
from tests.unit.examples import Raw, only_master

DATABASE = Source("Secret", "database")
SETTINGS = Source("ConfigMap", "settings")
MASTER = "spec.pytorchReplicaSpecs.Master.template.spec"
SECRET_REF = {"secretKeyRef": {"name": "database", "key": "password"}}


def plan(container: Raw, volumes: list[Raw] | None = None, jobs: Raw | None = None) -> JobPlan:
    """A job of one Master whose container has these fields."""

    def change(raw: Raw) -> None:
        only_master(raw).update(container)
        if volumes is not None:
            raw["spec"]["pytorchReplicaSpecs"]["Master"]["template"]["spec"]["volumes"] = volumes

    def settings(raw: Raw) -> None:
        raw["spec"]["jobs"] |= jobs or {}

    return read_pytorchjob(examples.training(change), examples.cluster(settings), [examples.nodeset()])


def mounted(kind: Raw, path: str = "/tmp/there", jobs: Raw | None = None, **mount: Any) -> JobPlan:
    """A job with one volume at a path."""
    return plan({"volumeMounts": [{"name": "v", "mountPath": path, **mount}]}, [{"name": "v", **kind}], jobs)


def unpack(tar: bytes) -> dict[str, tuple[int, bytes]]:
    """The files of a bundle, with their modes."""
    with tarfile.open(fileobj=io.BytesIO(tar)) as opened:
        files = [(info, opened.extractfile(info)) for info in opened if info.isfile()]
        return {info.name: (info.mode, file.read()) for info, file in files if file}


def run_task(made: JobPlan, folder: Path, tar: bytes) -> bytes:
    """What the program of a task sees, with the bundle unpacked where the task looks for it."""
    script = write_script(made)
    task = script.split("|| true\n", 1)[1].split("\nTASK_", 1)[0] + "\n"
    place = folder / "7" / "0"
    place.mkdir(parents=True)
    with tarfile.open(fileobj=io.BytesIO(tar)) as opened:
        opened.extractall(place, filter="data")
    task = task.replace(materials.ROOT, str(folder)).replace("cd -- /workspace", "cd -- /")
    environment = {
        "SLURM_JOB_ID": "7",
        "SLURM_PROCID": "0",
        "SLURM_NTASKS": "8",
        "PATH": "/usr/bin:/bin",
        "LANG": "C.UTF-8",
    }
    done = subprocess.run(["/bin/bash", "-c", task], env=environment, capture_output=True, timeout=20, check=True)
    return done.stdout


def test_a_secrets_value_is_nowhere_in_the_script() -> None:
    """Scenario 13: the script has the object's key at most, and the program gets the value by its environment."""
    made = plan({"env": [{"name": "PASSWORD", "valueFrom": SECRET_REF}], "command": ["cat"]})
    assert made.materials.sources == (DATABASE,)
    assert "PASSWORD" not in dict(made.programs[0].environment)
    assert "PASSWORD" not in write_script(made)


@given(st.binary(max_size=200).filter(lambda value: b"\0" not in value))
@settings(max_examples=150)
def test_a_value_arrives_byte_for_byte(tmp_path_factory: pytest.TempPathFactory, value: bytes) -> None:
    """From the object through the bundle and the shell into the program's environment."""
    made = plan({"env": [{"name": "PASSWORD", "valueFrom": SECRET_REF}], "command": ["cat", "/proc/self/environ"]})
    bundle = materials.bundle(made.materials, {DATABASE: {"password": value}})
    seen = run_task(made, tmp_path_factory.mktemp("run"), bundle.tar).split(b"\0")
    assert b"PASSWORD=" + value in seen


def test_references_to_a_secret_are_expanded_when_the_task_starts(tmp_path: Path) -> None:
    """In env and in args, as the kubelet does; envFrom's too; a name that nothing has stays as it is."""
    made = plan(
        {
            "env": [
                {"name": "PASSWORD", "valueFrom": SECRET_REF},
                {"name": "DSN", "value": "db://me:$(PASSWORD)@$(HOST)/$(NOWHERE)$(1x)"},
            ],
            "envFrom": [{"configMapRef": {"name": "settings"}, "prefix": "HO"}],
            "command": ["printf", "%s|", "$(DSN)", "$(HOST)", "$$(HOST)"],
        }
    )
    bundle = materials.bundle(made.materials, {DATABASE: {"password": b"it's $HOME"}, SETTINGS: {"ST": b"one"}})
    said = run_task(made, tmp_path, bundle.tar)
    assert said == b"db://me:it's $HOME@one/$(NOWHERE)$(1x)|one|$(HOST)|"
    assert "export DSN=" in write_script(made)  # not an argument of env's


def test_env_wins_over_envfrom_and_both_over_what_a_node_has(tmp_path: Path) -> None:
    """Kubernetes' order."""
    made = plan(
        {
            "env": [{"name": "A", "value": "plain"}, {"name": "B", "valueFrom": SECRET_REF}],
            "envFrom": [{"configMapRef": {"name": "settings"}}],
            "command": ["/bin/cat", "/proc/self/environ"],
        }
    )
    found = {DATABASE: {"password": b"secret"}, SETTINGS: dict.fromkeys(("A", "B", "C", "PATH"), b"map")}
    seen = run_task(made, tmp_path, materials.bundle(made.materials, found).tar).split(b"\0")
    assert {b"A=plain", b"B=secret", b"C=map", b"PATH=map"} <= set(seen)


def test_a_variable_may_have_any_name_that_a_task_itself_could_use(tmp_path: Path) -> None:
    """None of the script's own is in its way."""
    names = [
        *("pair", "pairs", "materials", "runtime", "mounts", "name", "i", "task", "first", "folder", "load", "LC_ALL")
    ]
    made = plan({"envFrom": [{"configMapRef": {"name": "settings"}}], "command": ["/bin/cat", "/proc/self/environ"]})
    bundle = materials.bundle(made.materials, {SETTINGS: {name: name[::-1].encode() for name in names}})
    seen = run_task(made, tmp_path, bundle.tar).split(b"\0")
    assert {f"{name}={name[::-1]}".encode() for name in names} <= set(seen)


@pytest.mark.parametrize("name", ["UID", "KUBESLURM_PAIRS", "a.b"])
def test_a_variable_that_would_hold_a_secrets_value_needs_a_usable_name(name: str) -> None:
    """Refused by its path, as one that comes of the Secret itself."""
    password = {"name": "PASSWORD", "valueFrom": SECRET_REF}
    with pytest.raises(InvalidObject) as caught:
        plan({"env": [password, {"name": name, "value": "x$(PASSWORD)"}]})
    assert caught.value.path == f"{MASTER}.containers[0].env[1].name"


def test_optional_objects_may_be_absent_and_others_hold_the_job() -> None:
    """Scenario 13: the variable is absent; what is missing is told in words."""
    made = plan(
        {
            "env": [
                {"name": "A", "valueFrom": {"secretKeyRef": {"name": "database", "key": "x", "optional": True}}},
                {"name": "B", "valueFrom": {"configMapKeyRef": {"name": "settings", "key": "y"}}},
            ]
        }
    ).materials
    assert materials.missing(made, {DATABASE: None, SETTINGS: None}) == ("ConfigMap settings",)
    assert materials.missing(made, {DATABASE: None, SETTINGS: {"z": b""}}) == ("key y of ConfigMap settings",)
    assert materials.missing(made, {DATABASE: {}, SETTINGS: {"y": b""}}) == ()
    assert unpack(materials.bundle(made, {DATABASE: {}, SETTINGS: {"y": b"1"}}).tar)["env"] == (0o600, b"B=1\0")


def test_keys_that_are_no_variables_are_told() -> None:
    """Of envFrom: no identifiers, Slurm's own, bash's own."""
    made = plan({"envFrom": [{"secretRef": {"name": "database"}}]}).materials
    data = dict.fromkeys(("tls.crt", "SLURM_JOB_ID", "UID", "IFS", "GOOD", "CUDA_VISIBLE_DEVICES"), b"x")
    bundle = materials.bundle(made, {DATABASE: data})
    assert unpack(bundle.tar)["from"][1] == b"GOOD=x\0"
    assert len(bundle.skipped) == 5


def test_a_variable_that_the_launcher_sets_is_not_taken_from_an_object() -> None:
    """As with plain variables."""
    made = plan({"envFrom": [{"secretRef": {"name": "database"}}]}).materials
    assert unpack(materials.bundle(made, {DATABASE: {"RANK": b"7"}}, {"RANK"}).tar)["from"][1] == b""


def test_a_volume_has_its_keys_as_files_of_the_owners_alone() -> None:
    """All keys, or the items with their paths and modes; nobody but the job's user reads them."""
    every = mounted({"secret": {"secretName": "database"}}).materials
    files = unpack(materials.bundle(every, {DATABASE: {"a": b"1", "b.c": b"2", "..": b"3"}}).tar)
    assert {name: file for name, file in files.items() if "volumes" in name} == {
        "volumes/v/a": (0o600, b"1"),
        "volumes/v/b.c": (0o600, b"2"),
    }
    items = [{"key": "a", "path": "deep/er", "mode": 0o555}]
    some = mounted({"configMap": {"name": "settings", "items": items, "defaultMode": 0o400}}).materials
    assert unpack(materials.bundle(some, {SETTINGS: {"a": b"1", "b": b"2"}}).tar)["volumes/v/deep/er"] == (0o500, b"1")


def test_a_projected_volume_joins_its_sources() -> None:
    """Objects, and what the template itself says."""
    sources = [
        {"secret": {"name": "database", "items": [{"key": "password", "path": "pass"}]}},
        {"configMap": {"name": "settings", "optional": True}},
        {"downwardAPI": {"items": [{"path": "ns", "fieldRef": {"fieldPath": "metadata.namespace"}}]}},
    ]
    made = mounted({"projected": {"sources": sources}}).materials
    files = unpack(materials.bundle(made, {DATABASE: {"password": b"x"}, SETTINGS: None}).tar)
    assert files["volumes/v/pass"][1] == b"x"
    assert files["volumes/v/ns"][1] == b"research"
    assert materials.missing(made, {DATABASE: {"password": b"x"}, SETTINGS: None}) == ()


@pytest.mark.parametrize(
    ("raw", "data"),
    [
        ({"kind": "Secret", "data": {"a": base64.b64encode(b"\xff\0").decode(), "b": "no base64!"}}, {"a": b"\xff\0"}),
        ({"kind": "ConfigMap", "data": {"a": "ü"}, "binaryData": {"b": "AA=="}}, {"a": "ü".encode(), "b": b"\0"}),
        ({"kind": "ConfigMap"}, {}),
    ],
)
def test_the_data_of_an_object(raw: Raw, data: dict[str, bytes]) -> None:
    """As bytes."""
    assert materials.contents(raw) == data


@pytest.mark.parametrize(
    "value", [pytest.param(b"x\0y", id="NUL"), pytest.param(b"x" * 120_001, id="larger than Linux takes")]
)
def test_a_value_that_no_variable_can_hold_is_told_without_it(value: bytes) -> None:
    """The message names the variable."""
    made = plan({"env": [{"name": "PASSWORD", "valueFrom": SECRET_REF}]}).materials
    with pytest.raises(ValueError, match="PASSWORD") as caught:
        materials.bundle(made, {DATABASE: {"password": value}})
    assert "xxx" not in str(caught.value)


ADMIN: Raw = {
    "mounts": {
        "links": ["/tmp", "/mnt"],
        "hostPaths": ["/data/sets"],
        "claims": [{"namespace": "research", "name": "home", "path": "/home/research"}],
    }
}


def test_the_admins_table_gives_claims_and_folders_of_the_nodes() -> None:
    """A claim's folder as a link; a folder at its own path needs none."""
    claim = {"persistentVolumeClaim": {"claimName": "home"}}
    assert "link /home/research/alice /mnt/home" in write_script(mounted(claim, "/mnt/home", ADMIN, subPath="alice"))
    same = mounted({"hostPath": {"path": "/data/sets/images"}}, "/data/sets/images", ADMIN)
    assert "link " not in write_script(same)


@pytest.mark.parametrize(
    ("kind", "path", "mount", "where"),
    [
        ({"hostPath": {"path": "/data/setsecret"}}, "/tmp/x", {}, "volumes[0].hostPath.path"),
        ({"hostPath": {"path": "/data/sets/../../etc"}}, "/tmp/x", {}, "volumes[0].hostPath.path"),
        ({"persistentVolumeClaim": {"claimName": "other"}}, "/tmp/x", {}, "volumes[0].persistentVolumeClaim.claimName"),
        ({"nfs": {"server": "x"}}, "/tmp/x", {}, "volumes[0].nfs"),
        ({"secret": {"secretName": "../x"}}, "/tmp/x", {}, "volumes[0].secret.secretName"),
        ({"secret": {"secretName": "x", "items": "y"}}, "/tmp/x", {}, "volumes[0].secret.items"),
        ({"emptyDir": {}}, "/etc/x", {}, "containers[0].volumeMounts[0].mountPath"),
        ({"emptyDir": {}}, "/tmp", {}, "containers[0].volumeMounts[0].mountPath"),
        ({"emptyDir": {}}, "/tmp/../etc", {}, "containers[0].volumeMounts[0].mountPath"),
        ({"emptyDir": {}}, "/proc/self", {}, "containers[0].volumeMounts[0].mountPath"),
        ({"emptyDir": {}}, "/tmp/x\n#SBATCH --uid=0", {}, "containers[0].volumeMounts[0].mountPath"),
        ({"emptyDir": {}}, "/tmp/x", {"subPath": "../y"}, "containers[0].volumeMounts[0].subPath"),
        ({"emptyDir": {}}, "/tmp/x", {"subPathExpr": "$(Y)"}, "containers[0].volumeMounts[0].subPathExpr"),
        (
            {"configMap": {"name": "x", "items": [{"key": "a", "path": "../b"}]}},
            "/tmp/x",
            {},
            "volumes[0].configMap.items[0].path",
        ),
        (
            {"projected": {"sources": [{"serviceAccountToken": {"path": "token"}}]}},
            "/tmp/x",
            {},
            "volumes[0].projected.sources[0].serviceAccountToken",
        ),
    ],
)
def test_what_can_not_be_mounted_is_refused_by_its_path(kind: Raw, path: str, mount: Raw, where: str) -> None:
    """Before anything is submitted."""
    with pytest.raises(InvalidObject) as caught:
        mounted(kind, path, ADMIN, **mount)
    assert caught.value.path == f"{MASTER}.{where}"


WORDS = st.sampled_from(
    [
        *(
            "name",
            "key",
            "items",
            "path",
            "mode",
            "optional",
            "defaultMode",
            "secret",
            "configMap",
            "projected",
            "sources",
        ),
        *(
            "secretName",
            "emptyDir",
            "hostPath",
            "medium",
            "downwardAPI",
            "fieldRef",
            "fieldPath",
            "metadata.labels",
            "v",
        ),
        *(
            "mountPath",
            "subPath",
            "/tmp/x",
            "../x",
            "a\nb",
            "$(X)",
            "",
            "prefix",
            "configMapRef",
            "secretRef",
            "persistentVolumeClaim",
        ),
        *("secretKeyRef", "configMapKeyRef", "valueFrom", "claimName", "A", "readOnly", "\ud800", "x" * 300),
    ]
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-1, 1000) | WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=4),
    max_leaves=12,
)
VOLUME = st.dictionaries(WORDS, VALUES, max_size=3).map(lambda found: {"name": "v", **found})


@given(
    VOLUME,
    st.dictionaries(WORDS, VALUES, max_size=3),
    st.lists(VALUES, max_size=2) | VALUES,
    st.dictionaries(WORDS, VALUES, max_size=2),
)
@settings(max_examples=300)
def test_no_template_however_odd_raises_anything_else_than_a_refusal(
    volume: Raw, mount: Raw, froms: Any, reference: Raw
) -> None:
    """A script that bash takes, or the path of a field."""
    fields = {
        "volumeMounts": [{"name": "v", "mountPath": "/tmp/x", **mount}],
        "envFrom": froms,
        "env": [{"name": "A", "valueFrom": reference}],
    }
    script = "true"
    with contextlib.suppress(InvalidObject):
        script = write_script(plan(fields, [volume]))
    subprocess.run(["bash", "-n"], input=script.encode(), check=True, timeout=10)


@pytest.mark.parametrize(("runtime", "told"), [("none", True), ("charliecloud", True), ("apptainer", False)])
def test_read_only_is_told_where_it_can_not_be_had(runtime: str, told: bool) -> None:
    """A folder that a program could write to against the user's word."""
    jobs = {**ADMIN, "containerRuntime": runtime, "imageRoot": "/images"}
    claim = {"persistentVolumeClaim": {"claimName": "home"}}
    ignored = mounted(claim, "/mnt/home", jobs, readOnly=True).ignored
    assert (f"{MASTER}.containers[0].volumeMounts[0].readOnly" in ignored) == told


def test_shared_memory_is_the_nodes_own() -> None:
    """The usual emptyDir at /dev/shm costs nothing and waits for nobody."""
    made = mounted({"emptyDir": {"medium": "Memory", "sizeLimit": "8Gi"}}, "/dev/shm")
    assert not made.materials.brought
    assert "/run/kubeslurm" not in write_script(made)
    assert f"{MASTER}.volumes[0].emptyDir.sizeLimit" in made.ignored


def test_a_job_without_materials_has_a_script_without_them() -> None:
    """Nothing is waited for."""
    assert "/run/kubeslurm" not in write_script(plan({}))
    assert Materials().sources == ()


def test_the_unpacking_is_done_once_and_by_the_jobs_user(tmp_path: Path) -> None:
    """A second delivery, such as by a new operator, changes nothing."""
    made = plan({"env": [{"name": "PASSWORD", "valueFrom": SECRET_REF}]}).materials
    command = materials.unpack_command(1000, 1001, 7, 2, 10240)
    assert command[:4] == ["setpriv", "--reuid=1000", "--regid=1001", "--clear-groups"]
    assert command[-3:] == ["/run/kubeslurm/7", "2", "10240"]
    for value in (b"first", b"second"):
        tar = materials.bundle(made, {DATABASE: {"password": value}}).tar
        subprocess.run(
            ["bash", "-c", materials.UNPACK, "unpack", tmp_path, "2", str(len(tar))], input=tar, check=True, timeout=10
        )
    assert (tmp_path / "2" / "env").read_bytes() == b"PASSWORD=first\0"
    assert (tmp_path / "2" / "env").stat().st_mode & 0o777 == 0o600
    assert [path.name for path in tmp_path.iterdir()] == ["2"]


def test_a_folder_in_memory_is_one_on_disk_elsewhere_than_dev_shm() -> None:
    """Told, since memory is not set aside for it."""
    made = mounted({"emptyDir": {"medium": "Memory"}}, "/tmp/fast")
    assert f"{MASTER}.volumes[0].emptyDir.medium" in made.ignored
    assert f'link "{materials.SCRATCH}/$SLURM_JOB_ID"/v /tmp/fast' in write_script(made)
