"""Other controllers of training jobs on the test cluster: Kubeflow's training operator, and Kueue.

Used by test_training_operator and test_kueue. Each is built from its Go module and installed by the manifests in it, and
taken away again when its context ends: what they set up speaks for every PyTorchJob of the cluster.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import yaml

from tests.cluster import Cluster, binaries, cache, versions

Raw = dict[str, Any]

PLAIN: Final = "plain"
"""The namespace whose jobs the training operator runs as plain pods."""
KUBEFLOW: Final = "kubeflow"
KUEUE: Final = "kueue-system"
_INIT_FILE: Final = "/etc/config/initContainer.yaml"
_INIT: Final = '- name: init-pytorch\n  image: {{.InitContainerImage}}\n  command: ["true"]\n'
"""Its own waits for a name with a program that our images have not; the master's port is waited for by the ranks."""


@contextmanager
def training_operator(cluster: Cluster) -> Iterator[None]:
    """The training operator, which sees one namespace alone."""
    cluster.load("training-operator")
    manifests = list(_training_operator(cluster))
    cluster.apply(manifests)
    try:
        _available(cluster, KUBEFLOW, "training-operator")
        yield
    finally:
        _take_away(cluster, manifests)


def _training_operator(cluster: Cluster) -> Iterator[Raw]:
    """As its standalone overlay has it, without the CRDs: the chart of ours has brought the one that counts."""
    module = binaries.go_module_folder("@".join(versions.TRAINING_OPERATOR))
    text = cluster.kubectl("kustomize", str(module / "manifests/overlays/standalone")).stdout
    yield {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": PLAIN}}
    for raw in yaml.safe_load_all(text):
        if raw["kind"] != "CustomResourceDefinition":
            yield _limited(raw) if raw["kind"] == "Deployment" else raw
    config = {"name": "init-container", "namespace": KUBEFLOW}
    yield {"apiVersion": "v1", "kind": "ConfigMap", "metadata": config, "data": {"initContainer.yaml": _INIT}}


def _limited(deployment: Raw) -> Raw:
    """One namespace, one kind of job, images that are there."""
    spec = deployment["spec"]["template"]["spec"]
    (container,) = spec["containers"]
    container |= {"image": versions.TRAINING_OPERATOR_IMAGE, "imagePullPolicy": "IfNotPresent"}
    container["args"] = [
        f"--namespace={PLAIN}",
        "--enable-scheme=pytorchjob",
        f"--pytorch-init-container-image={versions.SLURM_IMAGE}",
        f"--pytorch-init-container-template-file={_INIT_FILE}",
    ]
    container["volumeMounts"].append({"name": "init", "mountPath": "/etc/config"})
    spec["volumes"].append({"name": "init", "configMap": {"name": "init-container"}})
    return deployment


def kueue_is_built() -> bool:
    """Its build takes minutes of two cores; `make soak` makes it, and then it stays."""
    return any((cache.root() / "image-kueue").glob("[!.]*"))


@contextmanager
def kueue(cluster: Cluster) -> Iterator[None]:
    """Kueue, for PyTorchJobs alone."""
    cluster.load("kueue")
    module = binaries.go_module_folder("@".join(versions.KUEUE))
    chart = str(module / "charts/kueue")
    repository, _, tag = versions.KUEUE_IMAGE.partition(":")
    defaults = yaml.safe_load((module / "charts/kueue/values.yaml").read_text())
    config = yaml.safe_load(defaults["managerConfig"]["controllerManagerConfigYaml"])
    config["integrations"]["frameworks"] = ["kubeflow.org/pytorchjob"]
    image = {"repository": repository, "tag": tag, "pullPolicy": "IfNotPresent"}
    resources = {"requests": {"cpu": "50m", "memory": "128Mi"}, "limits": {"cpu": "2", "memory": "512Mi"}}
    values = {
        "controllerManager": {"manager": {"image": image, "resources": resources}},
        "managerConfig": {"controllerManagerConfigYaml": yaml.safe_dump(config)},
    }
    text = cluster.helm("template", "kueue", chart, "-n", KUEUE, *_values(values)).stdout
    namespace: Raw = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": KUEUE}}
    manifests = [namespace, *(one for one in yaml.safe_load_all(text) if one)]
    cluster.kubectl("apply", "--server-side", "-f", "-", input=yaml.safe_dump_all(manifests), timeout=120)
    try:
        _available(cluster, KUEUE, "kueue-controller-manager")
        yield
    finally:
        _take_away(cluster, manifests)


def _values(values: Raw) -> list[str]:
    return [word for name, value in values.items() for word in ("--set-json", f"{name}={json.dumps(value)}")]


def _available(cluster: Cluster, namespace: str, deployment: str) -> None:
    arguments = ("deployment", deployment, "--for=condition=Available", "--timeout=120s")
    cluster.kubectl("wait", "-n", namespace, *arguments, timeout=130)


def _take_away(cluster: Cluster, manifests: list[Raw]) -> None:
    """Webhooks first: nobody would answer them any more."""
    first = [one for one in manifests if one["kind"].endswith("WebhookConfiguration")]
    for those in (first, manifests):
        text = yaml.safe_dump_all(those)
        cluster.kubectl("delete", "--ignore-not-found", "--timeout=90s", "-f", "-", input=text, timeout=120)
