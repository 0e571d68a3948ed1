"""`pip install kubeslurm` without extras: the REST client and the command line work where nothing else is installed."""

from __future__ import annotations

import sys

import pytest

from tests.cluster.shell import run
from tests.unit.examples import EXAMPLES

BLOCK = """
import sys
class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {blocked!r}:
            raise ImportError(f"{{name}} is not installed here")
sys.meta_path.insert(0, Blocker())
"""
OPERATOR = {"aiohttp", "kopf", "kubernetes"}
DOMAIN = {"click", "jinja2", "kubeslurm", "kubeslurm_operator", "kubeslurm_templates", "pydantic", "yaml"}


def child(blocked: set[str], code: str) -> str:
    """What a program prints in an interpreter that lacks these packages."""
    return run([sys.executable, "-c", BLOCK.format(blocked=blocked) + code], timeout=60).stdout


def test_the_rest_client_needs_neither_kubernetes_nor_the_bridge() -> None:
    """Both clients are made, and the values are there."""
    code = """
import slurmrest
for name in slurmrest.__all__: getattr(slurmrest, name)
with slurmrest.Slurm("http://localhost:1", slurmrest.StaticToken("t")): pass
slurmrest.AsyncSlurm("http://localhost:1", slurmrest.StaticToken("t"))
print(slurmrest.JobStates.parse("RUNNING"))
"""
    assert child(OPERATOR | DOMAIN, code) == "RUNNING\n"


def test_pyslurms_face_needs_neither_kubernetes_nor_the_bridge() -> None:
    """A pyslurm user installs nothing of either."""
    code = "import slurmrest.pyslurm as pyslurm; print(pyslurm.Jobs.__name__)"
    assert child(OPERATOR | DOMAIN, code) == "Jobs\n"


@pytest.mark.parametrize("words", ["--help", f"render -f {EXAMPLES / 'pool.yaml'}"])
def test_the_command_line_needs_no_kubernetes_libraries(words: str) -> None:
    """Render and translate work on a laptop."""
    code = f"import sys; sys.argv = ['kubeslurm', *{words.split()!r}]; from kubeslurm.cli import main; main()"
    assert child(OPERATOR, code)


def test_importing_the_client_loads_no_http_and_no_asyncio() -> None:
    """Who only reads values pays for nothing else; the time is a figure of `make bench ARGS=slurmrest`."""
    code = "import slurmrest; print(sorted({'httpx', 'jwt', 'ClusterShell', 'asyncio', 'ssl'} & sys.modules.keys()))"
    assert child(set(), code) == "[]\n"
