"""A user of Kubeflow's training SDK: a job from birth to death. Prints what it saw, as JSON.

Arguments: kubeconfig, namespace.
"""

import json
import sys
import time

from kubeflow.training import TrainingClient, models
from kubernetes import client

NAME = "by-sdk"


def replica() -> models.KubeflowOrgV1ReplicaSpec:
    """One, of as little as can be."""
    container = client.V1Container(
        name="pytorch",
        image="registry.example/train:1",
        command=["sleep", "5"],
        resources=client.V1ResourceRequirements(limits={"cpu": "1", "memory": "64Mi"}),
    )
    pod = client.V1PodTemplateSpec(spec=client.V1PodSpec(containers=[container]))
    return models.KubeflowOrgV1ReplicaSpec(replicas=1, restart_policy="Never", template=pod)


def main(kubeconfig: str, namespace: str) -> None:
    """The whole life."""
    training = TrainingClient(config_file=kubeconfig, namespace=namespace)
    job = models.KubeflowOrgV1PyTorchJob(
        api_version="kubeflow.org/v1",
        kind="PyTorchJob",
        metadata=client.V1ObjectMeta(name=NAME, namespace=namespace),
        spec=models.KubeflowOrgV1PyTorchJobSpec(
            run_policy=models.KubeflowOrgV1RunPolicy(clean_pod_policy="None"),
            pytorch_replica_specs={"Master": replica(), "Worker": replica()},
        ),
    )
    training.create_job(job)
    training.wait_for_job_conditions(NAME, expected_conditions={"Created"}, wait_timeout=30, polling_interval=1)
    told = {"created": training.is_job_created(NAME)}
    training.wait_for_job_conditions(NAME, expected_conditions={"Succeeded"}, wait_timeout=90, polling_interval=1)
    told["conditions"] = [one.type for one in training.get_job_conditions(NAME)]
    told["succeeded"] = training.is_job_succeeded(NAME)
    told["listed"] = [one.metadata.name for one in training.list_jobs()]
    told["pods"] = sorted(training.get_job_pod_names(NAME))
    told["masters"] = training.get_job_pod_names(NAME, is_master=True)
    training.delete_job(NAME)
    end = time.monotonic() + 60
    while (left := [one.metadata.name for one in training.list_jobs()]) and time.monotonic() < end:
        time.sleep(1)
    print(json.dumps({**told, "left": left}))


if __name__ == "__main__":
    main(*sys.argv[1:])
