"""The house's own rules that no linter of ours knows: names of folders, pins, one version, one list of commands."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

from tests.demo import place

ROOT = Path(__file__).resolve().parents[3]
PACKAGES = ("bridge/kubeslurm", "operator/kubeslurm_operator", "slurmrest/slurmrest", "templates/kubeslurm_templates")
LONGEST_MODULE = 500
LONGEST_FUNCTION = 50
PIN = re.compile(r"^([A-Za-z0-9._-]+)==(\S+)", re.MULTILINE)


def tracked(*patterns: str) -> list[Path]:
    """Files that git knows and that are here."""
    out = subprocess.run(["git", "ls-files", "-z", *patterns], cwd=ROOT, capture_output=True, text=True, check=True)
    return [path for name in out.stdout.split("\0") if name and (path := ROOT / name).is_file()]


def project() -> dict[str, Any]:
    """The table `project` of pyproject.toml."""
    return dict(tomllib.loads((ROOT / "pyproject.toml").read_text())["project"])


def pins(name: str) -> dict[str, str]:
    """Package to version, of a lock file."""
    return {name.lower(): pinned for name, pinned in PIN.findall((ROOT / name).read_text())}


def functions() -> Iterator[tuple[str, int]]:
    """Every function of the packages, as `path:line name`, with its length in lines."""
    for path in tracked(*(f"{package}/*.py" for package in PACKAGES)):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                where = f"{path.relative_to(ROOT)}:{node.lineno} {node.name}"
                yield where, (node.end_lineno or node.lineno) - node.lineno + 1


def test_no_folder_of_the_root_shadows_the_standard_library() -> None:
    """`operator/` must not be importable: every `python -m` run from the root would break."""
    importable = {path.parent.name for path in ROOT.glob("*/__init__.py")} | {path.stem for path in ROOT.glob("*.py")}
    assert not importable & sys.stdlib_module_names


def test_the_standard_library_works_from_the_root() -> None:
    """With the root first on the path, `operator` is still Python's own."""
    code = "import operator, sys; sys.exit(operator.add(1, 2) != 3)"
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True, timeout=30)


@pytest.mark.parametrize("package", PACKAGES)
def test_each_package_is_typed(package: str) -> None:
    """Whoever imports a package of ours sees its types."""
    assert (ROOT / package / "py.typed").is_file()


def test_the_layers_hold() -> None:
    """The operator stands on the domain, the domain on the REST client, and nothing looks up."""
    lint = [str(Path(sys.executable).parent / "lint-imports"), "--no-cache"]
    done = subprocess.run(lint, cwd=ROOT, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stdout


def test_no_module_is_too_long_to_read() -> None:
    """A module of the packages fits in one sitting."""
    modules = tracked(*(f"{package}/*.py" for package in PACKAGES))
    lengths = {str(path.relative_to(ROOT)): len(path.read_text().splitlines()) for path in modules}
    assert lengths
    assert not {name: lines for name, lines in lengths.items() if lines > LONGEST_MODULE}


def test_no_function_is_too_long_to_read() -> None:
    """A function fits on a screen, half of them in ten lines."""
    lengths = dict(functions())
    assert not {name: lines for name, lines in lengths.items() if lines > LONGEST_FUNCTION}
    assert sorted(lengths.values())[len(lengths) // 2] <= 10


def test_the_version_stands_in_one_place() -> None:
    """What is installed says what pyproject.toml says; run `make venv` after a change."""
    assert version("kubeslurm") == project()["version"]


def test_the_chart_has_the_version_of_the_program() -> None:
    """Helm shows which program a release runs."""
    chart = (ROOT / "helm/kubeslurm/Chart.yaml").read_text()
    assert re.findall(r"^(?:version|appVersion): \"?([^\"\n]+)\"?$", chart, re.MULTILINE) == [project()["version"]] * 2


def test_the_changelog_knows_the_version() -> None:
    """A version that has no entry can't be released."""
    assert re.search(rf"^## \[{re.escape(project()['version'])}\]", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)


def test_the_image_and_the_tests_run_the_same_pins() -> None:
    """What is tested is what the operator's image holds."""
    image, dev = pins("requirements.lock"), pins("requirements-dev.lock")
    assert len(image) > 10
    assert image.items() <= dev.items()


def test_the_locks_hold_every_dependency() -> None:
    """A dependency added without `make lock` is missed by CI, so it fails here first."""
    data = project()
    wanted = [*data["dependencies"], *data["optional-dependencies"]["operator"]]
    wanted_names = {re.split(r"[<>=!~;\[ ]", line)[0].lower() for line in wanted}
    assert wanted_names <= pins("requirements.lock").keys()


@pytest.mark.parametrize("name", ["requirements.lock", "requirements-dev.lock"])
def test_a_lock_names_no_package_index(name: str) -> None:
    """Whichever index pip is set up for serves the pins; the hashes say that it served the right thing."""
    text = (ROOT / name).read_text()
    assert "://" not in text
    assert text.count("--hash=sha256:") > len(pins(name))


def test_make_help_lists_every_target() -> None:
    """A target that help does not show is not found."""
    makefile = (ROOT / "Makefile").read_text()
    phony = re.search(r"^\.PHONY: (.+)$", makefile, re.MULTILINE)
    assert phony
    shown = subprocess.run(["make"], cwd=ROOT, capture_output=True, text=True, check=True, timeout=30).stdout
    assert set(re.findall(r"^  make ([a-z0-9-]+) ", shown, re.MULTILINE)) == set(phony[1].split())


def test_every_make_command_in_the_pages_exists() -> None:
    """What README, CONTRIBUTING and docs tell a reader to type is there."""
    targets = set(re.findall(r"^([a-z0-9-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for page in tracked("*.md"):
        named = re.findall(r"(?:^|`)make ([a-z0-9-]+)", page.read_text(), re.MULTILINE)
        assert set(named) <= targets, page.name


def test_the_readme_tells_what_the_demo_gives() -> None:
    """The commands that README says work after `. .demo/env` are those that the demo makes, and `. .demo/env` is there."""
    text = (ROOT / "README.md").read_text()
    sentence = re.search(r"After the second command, (.+?)\s+in that shell work", text, re.DOTALL)
    assert sentence
    assert set(re.findall(r"`(\w+)`", sentence[1])) <= {"kubectl", "helm", *place.SLURM_COMMANDS}
    assert f". {place.FOLDER.relative_to(ROOT)}/env" in text


def test_the_kubeslurm_commands_of_the_pages_work() -> None:
    """Each `kubeslurm render` and `translate` line of the README runs as it stands."""
    lines = re.findall(r"^    (\.venv/bin/kubeslurm .+)$", (ROOT / "README.md").read_text(), re.MULTILINE)
    assert lines
    for line in lines:
        words = [sys.executable, "-m", "kubeslurm.cli", *line.split()[1:]]
        subprocess.run(words, cwd=ROOT, check=True, capture_output=True, timeout=30)


def test_every_link_of_the_pages_leads_somewhere() -> None:
    """Relative links in Markdown point at files that are there."""
    links = re.compile(r"\]\((?!\w+:|#)([^)#\s]+)")
    dead = [
        f"{page.relative_to(ROOT)}: {target}"
        for page in tracked("*.md")
        for target in links.findall(re.sub(r"`[^`\n]*`", "", page.read_text()))
        if not (page.parent / target).exists()
    ]
    assert not dead
