"""The objects of a pool: few rights, no key where it is not needed, and the user's template with ours around it."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from typing import Any

import pytest

from kubeslurm import manifests, users
from kubeslurm.api.nodeset import OWN_ENV, OWN_MOUNTS, OWN_PREFIX
from kubeslurm.layout import plan_pool
from kubeslurm.rendering import render
from tests.unit import examples
from tests.unit.examples import Raw

OWNER = {"apiVersion": "slurm.bridge/v1alpha1", "kind": "NodeSet", "name": "gpu-node", "uid": "u", "controller": True}


def slurmd(change: Any = None) -> Raw:
    """The pod of the example pool's node 3."""
    return manifests.slurmd_pod(examples.cluster(), examples.nodeset(change), 3, owner=OWNER)


def daemon_pods() -> dict[str, Raw]:
    """The pod specs of slurmctld and slurmrestd."""
    made = manifests.controller_objects(examples.cluster())
    return {one["kind"]: one["spec"]["template"]["spec"] for one in made if "template" in one["spec"]}


def containers(pod: Raw) -> Iterator[Raw]:
    """All containers of a pod spec."""
    yield from [*pod.get("initContainers", []), *pod["containers"]]


def test_the_pod_has_the_name_of_its_slurm_node() -> None:
    """Pod, host and labels say the same node."""
    pod = slurmd()
    assert pod["metadata"]["name"] == pod["spec"]["hostname"] == "gpu-node-3"
    assert pod["metadata"]["labels"]["slurm.bridge/ordinal"] == "3"
    assert pod["metadata"]["ownerReferences"] == [OWNER]


def test_the_template_stays_in_the_pod() -> None:
    """The user's mounts, volumes, labels and limits, beside ours."""
    pod = slurmd(lambda raw: raw["spec"]["template"].update(metadata={"labels": {"team": "a"}}))
    (container,) = pod["spec"]["containers"]
    assert container["resources"] == {"limits": {"nvidia.com/gpu": 8}}
    assert {"name": "program", "mountPath": "/workspace"} in container["volumeMounts"]
    assert "program" in {volume["name"] for volume in pod["spec"]["volumes"]}
    assert pod["metadata"]["labels"]["team"] == "a"


def test_a_template_cant_take_our_labels() -> None:
    """A pod that called itself another cluster's would be that cluster's."""
    pod = slurmd(lambda raw: raw["spec"]["template"].update(metadata={"labels": {"slurm.bridge/cluster": "other"}}))
    assert pod["metadata"]["labels"]["slurm.bridge/cluster"] == "ai-cluster"


def test_a_slurmd_pod_is_unprivileged() -> None:
    """All capabilities dropped but the six that Slurm cannot do without, and no token of Kubernetes."""
    pod = slurmd()["spec"]
    (container,) = pod["containers"]
    rights = container["securityContext"]
    assert rights["capabilities"]["drop"] == ["ALL"]
    assert set(rights["capabilities"]["add"]) == {"CHOWN", "DAC_OVERRIDE", "FOWNER", "KILL", "SETGID", "SETUID"}
    assert not rights.get("privileged")
    assert rights["allowPrivilegeEscalation"] is False
    assert pod["automountServiceAccountToken"] is False


def test_what_the_operator_sets_is_what_the_model_refuses() -> None:
    """So that neither of the two is lost: names of variables, volumes and mounts."""
    plain = slurmd(lambda raw: raw["spec"]["template"].update(spec=_bare()))["spec"]
    (container,) = plain["containers"]
    assert {one["name"] for one in container["env"]} == OWN_ENV
    assert {one["mountPath"] for one in container["volumeMounts"]} < OWN_MOUNTS
    assert all(one["name"].startswith(OWN_PREFIX) for one in plain["volumes"])


def _bare() -> Raw:
    limits = {"limits": {"nvidia.com/gpu": 8}}
    return {"containers": [{"name": "slurmd", "image": "a", "resources": limits}]}


def test_no_jwt_key_reaches_a_slurmd() -> None:
    """With it, root of one node could be anyone's user in the whole cluster."""
    (keys,) = [one for one in slurmd()["spec"]["volumes"] if "secret" in one]
    assert [one["key"] for one in keys["secret"]["items"]] == ["slurm.key"]


@pytest.mark.parametrize("kind", ["StatefulSet", "Deployment"])
def test_daemons_run_locked_down(kind: str) -> None:
    """Neither root, nor a capability, nor a writable root, nor a token."""
    pod = daemon_pods()[kind]
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["automountServiceAccountToken"] is False
    for container in containers(pod):
        rights = container["securityContext"]
        assert rights["capabilities"] == {"drop": ["ALL"]}
        assert rights["readOnlyRootFilesystem"] is True
        assert rights["allowPrivilegeEscalation"] is False


def test_slurmrestd_has_no_key() -> None:
    """It passes its callers' tokens on; whoever takes it over gains none."""
    assert not [one for one in daemon_pods()["Deployment"]["volumes"] if "secret" in one]


def test_slurmctlds_state_is_on_a_claim() -> None:
    """Of the size that the spec asks for."""
    cluster = examples.cluster(lambda raw: raw["spec"]["controller"]["managed"].update(storage="2Gi"))
    (made,) = [one for one in manifests.controller_objects(cluster) if one["kind"] == "StatefulSet"]
    (claim,) = made["spec"]["volumeClaimTemplates"]
    assert claim["spec"]["resources"]["requests"]["storage"] == "2Gi"
    assert "storageClassName" not in claim["spec"]


def test_keys_are_in_the_secret_as_they_are() -> None:
    """Base64, as Kubernetes wants it."""
    data = manifests.keys_secret(examples.cluster(), b"one", b"two")["data"]
    assert {name: base64.b64decode(value) for name, value in data.items()} == {
        "slurm.key": b"one",
        "jwt_hs256.key": b"two",
    }


def test_the_config_map_holds_every_file_and_the_digest() -> None:
    """By the digest one sees in the pod which config it has."""
    rendered = render(plan_pool(examples.cluster(), [examples.nodeset()]))
    body = manifests.config_map(examples.cluster(), rendered)
    assert body["data"] == {**rendered.files, "digest": rendered.digest + "\n"}


def test_the_digest_of_a_template_changes_with_it() -> None:
    """And not with the number of nodes."""
    same = examples.nodeset(lambda raw: raw["spec"].update(replicas=3))
    other = examples.nodeset(lambda raw: raw["spec"]["template"]["spec"]["containers"][0].update(image="b"))
    digest = manifests.template_digest(examples.nodeset())
    assert manifests.template_digest(same) == digest
    assert manifests.template_digest(other) != digest


def test_users_are_files_in_order_of_their_ids() -> None:
    """passwd, group and shadow of two tenants, one user of which comes twice."""

    def change(raw: Raw) -> None:
        bob = {"name": "bob", "uid": 900, "gid": 1000}
        for namespace in ("b", "c"):
            raw["spec"]["tenants"].append({"namespaces": [namespace], "user": bob, "partitions": ["gpu_partition"]})

    made = users.files(examples.cluster(change).spec.tenants)
    assert made == {
        "passwd": "bob:x:900:1000:bob:/tmp:/bin/bash\nalice:x:1000:1000:alice:/tmp:/bin/bash\n",
        "group": "bob:x:1000:\n",
        "shadow": "bob:*:19000:0:99999:7:::\nalice:*:19000:0:99999:7:::\n",
    }


def test_groups_have_their_members_and_the_names_of_the_spec() -> None:
    """Two users of one group; one of them has it as its own, without standing in it twice."""

    def change(raw: Raw) -> None:
        lab = {"name": "lab", "gid": 2000}
        raw["spec"]["tenants"][0]["user"]["groups"] = [lab]
        bob = {"name": "bob", "uid": 1001, "gid": 2000, "groups": [{"name": "night", "gid": 2001}]}
        raw["spec"]["tenants"].append({"namespaces": ["b"], "user": bob, "partitions": ["gpu_partition"]})

    made = users.files(examples.cluster(change).spec.tenants)
    assert made["group"] == "alice:x:1000:\nlab:x:2000:alice\nnight:x:2001:bob\n"
    assert "bob:x:1001:2000:" in made["passwd"]


def test_the_digest_of_the_users_changes_with_them() -> None:
    """So that pods are told, and not with the order of tenants."""
    other = examples.cluster(lambda raw: raw["spec"]["tenants"][0]["user"].update(uid=1001))
    assert manifests.users_digest(examples.cluster()) == manifests.users_digest(examples.cluster())
    assert manifests.users_digest(other) != manifests.users_digest(examples.cluster())
