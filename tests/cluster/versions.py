"""The versions of the upstream parts that the harness builds. Changing one rebuilds what depends on it."""

from __future__ import annotations

KUBERNETES = "v1.36.3"
ETCD_IMAGE = "registry.k8s.io/etcd:3.6.8-0"
COREDNS_IMAGE = "registry.k8s.io/coredns/coredns:v1.14.2"  # the tag that kubeadm asks for; the binary is newer
PAUSE_IMAGES = ("registry.k8s.io/pause:3.10", "registry.k8s.io/pause:3.10.2")  # containerd's, kubeadm's
KIND = "v0.33.0"
CRICTL = "v1.34.0"
HELM = "v3.22.0"
KUEUE = ("sigs.k8s.io/kueue", "v0.17.0")
TRAINING_OPERATOR = ("github.com/kubeflow/training-operator", "v1.8.1")

KUBELITE_IMAGE = "localhost/kubelite:1"
FAKEGPU_IMAGE = "localhost/fakegpu:1"
NODE_IMAGE = "kindest/node"
SLURM_IMAGE = "localhost/slurm:24.11"
ACCOUNTING_IMAGE = "localhost/slurm-accounting:24.11"
CONTAINED_IMAGE = "localhost/slurm-contained:24.11"
OPERATOR_IMAGE = "localhost/kubeslurm-operator:dev"
KUEUE_IMAGE = "localhost/kueue:1"
TRAINING_OPERATOR_IMAGE = "localhost/training-operator:1"
