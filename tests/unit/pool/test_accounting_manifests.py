"""slurmdbd's objects: no root, no capability, and a password that stands in a file of its pod alone."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from kubeslurm import accounting_manifests, manifests
from kubeslurm.api.slurmcluster import SlurmCluster
from tests.unit import examples
from tests.unit.examples import Raw

DATABASE = {"host": "db.sql.svc", "port": 3307, "user": "acct", "passwordSecret": {"name": "db-secret", "key": "pw"}}


def cluster(**accounting: object) -> SlurmCluster:
    """The example with accounting."""
    given = {"database": DATABASE, **accounting}
    return examples.cluster(lambda raw: raw["spec"].update(accounting=given))


def made(cluster: SlurmCluster) -> dict[str, Raw]:
    """The objects by kind."""
    return {one["kind"]: one for one in accounting_manifests.objects(cluster)}


def pod(kind: str, name: str, cluster: SlurmCluster) -> Raw:
    """The pod spec of one of the controller's objects."""
    found: Raw = next(
        one["spec"]["template"]["spec"]
        for one in manifests.controller_objects(cluster)
        if (one["kind"], one["metadata"]["name"]) == (kind, name)
    )
    return found


def test_without_accounting_there_is_nothing() -> None:
    """No object, slurmrestd serves slurmctld only, and slurmctld waits for nobody."""
    plain = examples.cluster()
    assert accounting_manifests.objects(plain) == []
    assert "slurmctld" in pod("Deployment", "ai-cluster-restd", plain)["containers"][0]["command"]
    waits = [one["name"] for one in pod("StatefulSet", "ai-cluster-controller", plain)["initContainers"]]
    assert waits == ["prepare"]


def test_what_is_to_go_is_what_was_made() -> None:
    """Each object by its kind and name."""
    there = {(one["apiVersion"], one["kind"], one["metadata"]["name"]) for one in made(cluster()).values()}
    assert set(accounting_manifests.names_of("ai-cluster")) == there


def test_slurmdbd_conf_names_the_database_and_no_password() -> None:
    """The ConfigMap can be read by many."""
    text = made(cluster())["ConfigMap"]["data"]["slurmdbd.conf"]
    lines = ["DbdHost=ai-cluster-dbd", "StorageHost=db.sql.svc", "StoragePort=3307", "StorageUser=acct"]
    assert set(lines) <= set(text.splitlines())
    assert "StoragePass" not in text


def test_slurmdbd_runs_without_root_or_a_capability() -> None:
    """As user slurm, on the host that slurmdbd.conf names, with the admin's Secret mounted for the preparing step only."""
    spec = made(cluster())["Deployment"]["spec"]["template"]["spec"]
    assert (spec["hostname"], spec["securityContext"]["runAsUser"]) == ("ai-cluster-dbd", 64030)
    for one in (*spec["initContainers"], *spec["containers"]):
        assert one["securityContext"]["capabilities"] == {"drop": ["ALL"]}
        assert one["securityContext"]["readOnlyRootFilesystem"] is True
    (password,) = [one["secret"] for one in spec["volumes"] if one["name"] == "password"]
    assert (password["secretName"], password["items"]) == ("db-secret", [{"key": "pw", "path": "password"}])
    assert "password" not in {one["name"] for one in spec["containers"][0]["volumeMounts"]}


def test_another_database_starts_slurmdbd_anew() -> None:
    """It reads its file only then."""
    other = {**DATABASE, "host": "other"}
    digests = {
        one["Deployment"]["spec"]["template"]["metadata"]["annotations"]["slurm.bridge/config-digest"]
        for one in (made(cluster()), made(cluster(database=other)), made(cluster(manage=False)))
    }
    assert len(digests) == 2


def test_the_image_is_the_controllers_unless_it_is_given() -> None:
    """Both in the preparing step and the daemon."""
    spec = made(cluster(image="localhost/dbd:1"))["Deployment"]["spec"]["template"]["spec"]
    assert {one["image"] for one in (*spec["initContainers"], *spec["containers"])} == {"localhost/dbd:1"}
    plain = made(cluster())["Deployment"]["spec"]["template"]["spec"]
    assert plain["containers"][0]["image"] == "localhost/slurm:24.11"


def test_slurmctld_waits_for_slurmdbd_and_restarts_when_more_is_enforced() -> None:
    """Its pod's template changes with what it is told to check."""
    assert "slurmctld,slurmdbd" in pod("Deployment", "ai-cluster-restd", cluster())["containers"][0]["command"]
    waits = [
        pod("StatefulSet", "ai-cluster-controller", one)["initContainers"][1]
        for one in (cluster(), cluster(enforce=["associations"]))
    ]
    assert waits[0]["name"] == "wait-for-slurmdbd"
    assert waits[0] != waits[1]


@pytest.mark.parametrize(
    ("password", "taken"),
    [
        ("s3cret.Word-1", True),
        ("line\n", True),
        ("a\nStorageHost=evil", False),
        ("a b", False),
        ("a#b", False),
        ("", False),
    ],
)
def test_a_password_that_could_be_another_line_is_refused(tmp_path: Path, password: str, taken: bool) -> None:
    """By the preparing step, with its reason, before slurmdbd starts."""
    for name, text in {"password/password": password, "config/slurmdbd.conf": "DbdHost=x\n"}.items():
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text(text)
    for name in ("keys/slurm.key", "keys/jwt_hs256.key", "etc/slurm/x", "run/x"):
        (tmp_path / name).parent.mkdir(exist_ok=True, parents=True)
        (tmp_path / name).touch()
    script = made(cluster())["Deployment"]["spec"]["template"]["spec"]["initContainers"][0]["command"][2]
    for folder in ("keys", "password", "config", "etc", "run"):
        script = script.replace(f" /{folder}/", f" {tmp_path}/{folder}/")
    done = subprocess.run(["/bin/sh", "-c", script], capture_output=True, text=True, check=False, timeout=10)
    conf = tmp_path / "etc/slurm/slurmdbd.conf"
    assert (done.returncode == 0, conf.exists()) == (taken, taken), done.stderr
    if taken:
        assert conf.read_text() == f"DbdHost=x\nStoragePass={password.strip()}\n"
        assert conf.stat().st_mode & 0o777 == 0o600
    else:
        assert "password is empty or has a character other than" in done.stderr
