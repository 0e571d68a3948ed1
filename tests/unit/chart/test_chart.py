"""The Helm chart as the real helm renders it: what the operator may do, how its pod is locked down, what values do.

helm comes from the cache of the test cluster; it is built where CI=true, else the tests are skipped until
`python -m tests.cluster up` has built it.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cluster import binaries, cache, versions

pytestmark = pytest.mark.timeout(1200)  # a cold cache builds helm first

ROOT = Path(__file__).resolve().parents[3]
CHART = ROOT / "helm" / "kubeslurm"
Objects = list[dict[str, Any]]
Template = Callable[..., Objects]


@pytest.fixture(scope="session")
def helm() -> str:
    """The path of helm."""
    if os.environ.get("CI") != "true" and not any((cache.root() / "bin-helm").glob("[!.]*/helm")):
        pytest.skip("helm is not built yet: `python -m tests.cluster up` builds it")
    return str(binaries.upstream("helm"))


@pytest.fixture
def template(helm: str) -> Template:
    """`helm template` with values given as keyword arguments."""

    def run(**values: Any) -> Objects:
        out = run_helm(helm, "template", "kubeslurm", str(CHART), "-n", "kubeslurm-system", "-f", "-", values=values)
        assert out.returncode == 0, out.stderr
        return [one for one in yaml.safe_load_all(out.stdout) if one]

    return run


def run_helm(helm: str, *arguments: str, values: dict[str, Any]) -> subprocess.CompletedProcess[str]:
    """helm with the values on its standard input."""
    if arguments[0] == "template":  # without a cluster, helm takes the Kubernetes of its own build: none, v1.20
        arguments = (*arguments, "--kube-version", versions.KUBERNETES)
    return subprocess.run(
        [helm, *arguments], input=json.dumps(values), capture_output=True, text=True, check=False, timeout=60
    )


def only(objects: Objects, kind: str, name: str | None = None) -> dict[str, Any]:
    """The one object of that kind (and name)."""
    found = [one for one in objects if one["kind"] == kind and name in (None, one["metadata"]["name"])]
    assert len(found) == 1
    return found[0]


def rights(objects: Objects) -> dict[tuple[str, str], set[str]]:
    """(group, resource) to verbs, over all roles."""
    found: dict[tuple[str, str], set[str]] = {}
    for role in (one for one in objects if one["kind"] in ("ClusterRole", "Role")):
        for rule in role["rules"]:
            for group in rule["apiGroups"]:
                for resource in rule["resources"]:
                    found.setdefault((group, resource), set()).update(rule["verbs"])
    return found


def test_helm_lint_finds_nothing(helm: str) -> None:
    """The chart passes helm's own strict linter."""
    done = run_helm(helm, "lint", "--strict", str(CHART), values={})
    assert done.returncode == 0, done.stdout


def test_no_right_is_a_wildcard(template: Template) -> None:
    """Every right names its group, its resource and its verb."""
    named = rights(template())
    assert named
    assert not [one for one, verbs in named.items() if "*" in {*one, *verbs}]


def test_secrets_are_not_listed(template: Template) -> None:
    """The operator reads a Secret by its name and makes one; it can't look around, change or delete."""
    assert rights(template())["", "secrets"] == {"get", "create"}


def test_the_operator_hands_out_no_rights(template: Template) -> None:
    """It can neither change roles nor act as somebody else; of others' tokens and rights it may only ask."""
    named = rights(template())
    groups = ("rbac.authorization.k8s.io", "authentication.k8s.io", "authorization.k8s.io")
    asks = {("authentication.k8s.io", "tokenreviews"), ("authorization.k8s.io", "subjectaccessreviews")}
    assert {one for one in named if one[0] in groups} == asks
    assert all(named[one] == {"create"} for one in asks)
    assert not {"impersonate", "bind", "escalate"} & set().union(*named.values())


def test_leases_are_a_right_in_their_namespace_only(template: Template) -> None:
    """The heartbeats of virtual nodes live in kube-node-lease; other leases are no business of ours."""
    holders = [one for one in template() if "leases" in str(one.get("rules"))]
    assert [(one["kind"], one["metadata"]["namespace"]) for one in holders] == [("Role", "kube-node-lease")]


def test_the_pod_is_locked_down(template: Template) -> None:
    """Non-root, read-only root, no capability, seccomp: what the restricted Pod Security Standard wants."""
    pod = only(template(), "Deployment")["spec"]["template"]["spec"]
    container = pod["containers"][0]["securityContext"]
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["runAsUser"] == 65532
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert container["readOnlyRootFilesystem"] is True
    assert container["allowPrivilegeEscalation"] is False
    assert container["capabilities"] == {"drop": ["ALL"]}


def test_two_operators_never_overlap(template: Template) -> None:
    """An update ends the old pod before it starts the new one."""
    spec = only(template(), "Deployment")["spec"]
    assert (spec["replicas"], spec["strategy"]) == (1, {"type": "Recreate"})


def test_the_image_is_the_release_of_the_chart(template: Template) -> None:
    """Without a tag the pod runs the program that the chart belongs to."""
    version = yaml.safe_load((CHART / "Chart.yaml").read_text())["appVersion"]
    container = only(template(), "Deployment")["spec"]["template"]["spec"]["containers"][0]
    assert container["image"] == f"localhost/kubeslurm-operator:{version}"


def test_the_training_crd_survives_uninstall(template: Template) -> None:
    """Taking the operator away must not take every PyTorchJob with it."""
    crd = only(template(), "CustomResourceDefinition", "pytorchjobs.kubeflow.org")
    assert crd["metadata"]["annotations"]["helm.sh/resource-policy"] == "keep"
    assert crd["spec"] == yaml.safe_load((CHART / "files/pytorchjobs.yaml").read_text())["spec"]


def test_the_training_crd_can_be_left_to_others(template: Template) -> None:
    """Where the training operator brings it, two releases must not fight over one CRD."""
    assert not [one for one in template(pytorchjobCRD={"install": False}) if one["kind"] == "CustomResourceDefinition"]


def test_a_pool_comes_with_the_release_when_asked(template: Template) -> None:
    """NodeSets given as values belong to the SlurmCluster given beside them."""
    pool = {"create": True, "name": "ai", "namespace": "slurm", "spec": {"partitions": [{"name": "p"}]}}
    objects = template(slurmCluster=pool, nodeSets=[{"name": "gpu", "spec": {"replicas": 3}}])
    assert only(objects, "SlurmCluster")["spec"] == pool["spec"]
    node_set = only(objects, "NodeSet")
    assert node_set["metadata"]["namespace"] == "slurm"
    assert node_set["spec"] == {"replicas": 3, "clusterRef": {"name": "ai"}}


def test_no_pool_comes_unasked(template: Template) -> None:
    """A plain install makes no Slurm."""
    assert not [one for one in template() if one["kind"] in ("SlurmCluster", "NodeSet")]


@pytest.mark.parametrize("values", [{"imagee": {}}, {"logLevel": "LOUD"}, {"pytorchjobCRD": {"install": "yes"}}])
def test_a_wrong_value_is_refused(helm: str, values: dict[str, Any]) -> None:
    """A misspelt value fails the install instead of being ignored."""
    done = run_helm(helm, "template", "kubeslurm", str(CHART), "-f", "-", values=values)
    assert done.returncode != 0
    assert "schema" in done.stderr
