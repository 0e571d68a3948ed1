"""The command line, as a shell sees it: output, exit status, and one line for what is wrong."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.unit import examples
from tests.unit.examples import EXAMPLES, Change, Raw, container

POOL = str(EXAMPLES / "pool.yaml")
JOB = str(EXAMPLES / "pytorchjob.yaml")


def kubeslurm(*arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    """Run the command in a process of its own."""
    command = [sys.executable, "-m", "kubeslurm.cli", *arguments]
    return subprocess.run(command, input=stdin, capture_output=True, text=True, check=False, timeout=60)


def test_render_shows_both_files() -> None:
    """slurm.conf and gres.conf, each under its name."""
    done = kubeslurm("render", "-f", POOL)
    assert done.returncode == 0
    assert done.stdout.startswith("# ==== slurm.conf\n")
    assert "# ==== gres.conf\nAutoDetect=off\nName=gpu Type=h100 File=/dev/nvidia[0-7]\n" in done.stdout


def test_render_twice_gives_the_same_bytes(tmp_path: Path) -> None:
    """Also the files of --output-dir."""
    for name in ("a", "b"):
        assert kubeslurm("render", "-f", POOL, "--output-dir", str(tmp_path / name)).returncode == 0
    one, two = ({file.name: file.read_bytes() for file in (tmp_path / name).iterdir()} for name in ("a", "b"))
    assert one == two
    assert {"slurm.conf", "gres.conf", "cgroup.conf", "prolog.sh", "epilog.sh"} == set(one)


def test_translate_shows_the_script() -> None:
    """With every line of the reference."""
    done = kubeslurm("translate", "-f", JOB, "--cluster", POOL)
    assert done.returncode == 0
    expected = (EXAMPLES / "expected-directives.txt").read_text().splitlines()
    assert set(expected) <= set(done.stdout.splitlines())


def test_translate_json_is_the_rest_body() -> None:
    """script and job; the script is the one shown without --json."""
    body = json.loads(kubeslurm("translate", "-f", JOB, "--cluster", POOL, "--json").stdout)
    assert body["script"] == kubeslurm("translate", "-f", JOB, "--cluster", POOL).stdout
    assert body["job"]["tres_per_node"] == "gres/gpu:8"


def test_translate_needs_no_cluster() -> None:
    """Then there is no partition, and no default."""
    done = kubeslurm("translate", "-f", "-", stdin=Path(JOB).read_text())
    assert done.returncode == 0
    assert "--partition" not in done.stdout
    assert "#SBATCH --nodes=64" in done.stdout


def test_translate_takes_a_tenant_by_the_labels_of_a_namespace_given_with_it(tmp_path: Path) -> None:
    """The operator knows them from Kubernetes; here they stand in a file."""
    job = next(yaml.safe_load_all(Path(JOB).read_text()))
    pool = list(yaml.safe_load_all(Path(POOL).read_text()))
    cluster = next(one for one in pool if one["kind"] == "SlurmCluster")
    del cluster["spec"]["tenants"][0]["namespaces"]
    cluster["spec"]["tenants"][0]["namespaceSelector"] = {"matchLabels": {"team": "a"}}
    for name, labels, code in (("with", {"team": "a"}, 0), ("without", {}, 2)):
        space = {"kind": "Namespace", "metadata": {"name": job["metadata"]["namespace"], "labels": labels}}
        others = [one for one in pool if one["kind"] != "Namespace"]
        (tmp_path / name).write_text(yaml.safe_dump_all([space, *others]))
        assert kubeslurm("translate", "-f", JOB, "--cluster", str(tmp_path / name)).returncode == code


def bad_pool(kind: str, change: Change) -> str:
    """The example pool with one object changed."""
    others = [one for one in examples.documents("pool.yaml") if one["kind"] != kind]
    return yaml.safe_dump_all([*others, examples.raw(kind, change)])


def no_command(raw: Raw) -> None:
    """A job whose containers have no command."""
    for role in ("Master", "Worker"):
        del container(raw, role)["command"]


@pytest.mark.parametrize(
    ("arguments", "stdin", "words"),
    [
        (
            ["render", "-f", "-"],
            bad_pool("NodeSet", lambda raw: raw["spec"]["gpu"].update(count=4)),
            ["NodeSet slurm/gpu-node", "spec.gpu.count"],
        ),
        (
            ["render", "-f", "-"],
            bad_pool("SlurmCluster", lambda raw: raw["spec"]["config"].update(SchedulerType="a\nb")),
            ["SlurmCluster slurm/ai-cluster", "spec.config.SchedulerType"],
        ),
        (["render", "-f", "-"], "a: [", ["-: "]),
        (
            ["render", "-f", "-"],
            bad_pool("SlurmCluster", lambda raw: raw["metadata"].update(name="a\nb")),
            ["SlurmCluster slurm/a b: metadata.name"],
        ),
        (["render", "-f", "-"], "kind: Namespace", ["no SlurmCluster"]),
        (["render", "-f", "-"], "kind: List\nitems: [1]", ["-: a document is no object"]),
        (["translate", "-f", "-"], "kind: List\nitems: 5", ["-: a document is no object"]),
        (["render", "-f", "/no/such/file"], "", ["/no/such/file"]),
        (
            ["translate", "-f", "-", "--cluster", POOL],
            yaml.safe_dump(examples.raw("PyTorchJob", no_command)),
            ["PyTorchJob research/ai-training", "spec.pytorchReplicaSpecs.Master.template.spec.containers[0].command"],
        ),
        (["translate", "-f", POOL], "", ["no PyTorchJob is given"]),
    ],
)
def test_bad_input_ends_with_2_and_one_line(arguments: list[str], stdin: str, words: list[str]) -> None:
    """The line names the object and the field; nothing is on stdout."""
    done = kubeslurm(*arguments, stdin=stdin)
    assert done.returncode == 2
    assert done.stdout == ""
    assert len(done.stderr.splitlines()) == 1
    assert all(word in done.stderr for word in words), done.stderr
