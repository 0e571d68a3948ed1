"""The images that tests load into a cluster: Slurm, the operator, the fake GPU plugin.

`archive(name)` builds what is missing or old and returns a docker-archive. The operator's top layer is the tree's own
packages, made anew in less than a second whenever they changed; the layers below come out of the cache.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from pathlib import Path

from tests.cluster import archives, binaries, cache, rootfs, versions
from tests.cluster.shell import run

REPOSITORY = cache.HERE.parent.parent
_PACKAGES = (
    "bridge/kubeslurm",
    "operator/kubeslurm_operator",
    "slurmrest/slurmrest",
    "templates/kubeslurm_templates",
)
_SITE = "usr/local/lib/python3.13/dist-packages"
_UID = "65532"

_SLURM_PACKAGES = (
    "slurmd slurmctld slurmrestd slurm-client slurm-wlm-basic-plugins slurm-wlm-jwt-plugin"
    " python3 iproute2 procps hostname libnss-extrausers"
)
_ACCOUNTING_PACKAGES = "slurmdbd slurm-wlm-mysql-plugin mariadb-server"
_SLURM_HOOKS = (
    # Tenants come and go without a new image: their users are read from /var/lib/extrausers.
    r'sed -i -E "s/^(passwd|group|shadow):.*/\1: files extrausers/" "$1/etc/nsswitch.conf"',
    # Debian's plugstack.conf includes a folder that Slurm can't read: two error lines at every start.
    ': > "$1/etc/slurm/plugstack.conf"',
)


def slurm_recipe(suite: str = "trixie") -> rootfs.Recipe:
    """Slurm of a Debian suite: trixie has 24.11, sid a newer one."""
    return rootfs.Recipe(f"slurm-{suite}", suite, _SLURM_PACKAGES.split(), _SLURM_HOOKS)


def accounting_recipe(suite: str = "trixie") -> rootfs.Recipe:
    """The same with slurmdbd and a MariaDB that holds slurmdbd's empty database; for the bare Slurm only."""
    packages = f"{_SLURM_PACKAGES} {_ACCOUNTING_PACKAGES}".split()
    hook = (cache.FILES / "slurm-database.sh").read_text()
    return rootfs.Recipe(f"slurm-accounting-{suite}", suite, packages, (*_SLURM_HOOKS, hook))


def contained_recipe() -> rootfs.Recipe:
    """Slurm with charliecloud, which runs images without a privilege; for the bare Slurm only."""
    return rootfs.Recipe("slurm-contained", "trixie", [*_SLURM_PACKAGES.split(), "charliecloud-runtime"], _SLURM_HOOKS)


def bare_recipe(suite: str = "trixie", *, accounting: bool = False) -> rootfs.Recipe:
    """What a bare Slurm runs on: the pods' root where that will do (it has to be built anyway), else one for all."""
    return accounting_recipe(suite) if accounting or suite != "trixie" else slurm_recipe(suite)


CONTAINED = "images/registry.example%train+1"
"""Where charliecloud finds registry.example/train:1."""

PYTHON = rootfs.Recipe("python", "trixie", ["python3", "ca-certificates"])


def _slurm() -> Path:
    return _of_recipe("image-slurm", slurm_recipe(), versions.SLURM_IMAGE)


def _accounting() -> Path:
    """slurmdbd and a MariaDB in one image, for the test that needs both."""
    return _of_recipe("image-accounting", accounting_recipe(), versions.ACCOUNTING_IMAGE)


def _contained() -> Path:
    """Slurm with charliecloud, and one image for it: the root file system of Python."""
    recipe, root = contained_recipe(), rootfs.folder(PYTHON)

    def build(path: Path) -> None:
        layer = path.with_suffix(".layer")
        archives.layer_of_folder(layer, root, under=CONTAINED)
        image = archives.Image(versions.CONTAINED_IMAGE, command=["/bin/bash"])
        archives.write(path, image, [rootfs.archive(recipe), layer])
        layer.unlink()

    key = cache.key_of("contained-1", recipe.key, PYTHON.key, versions.CONTAINED_IMAGE, CONTAINED)
    return cache.artefact("image-contained", key, build)


def _of_recipe(folder: str, recipe: rootfs.Recipe, name: str) -> Path:
    image = archives.Image(name, command=["/bin/bash"])

    def build(path: Path) -> None:
        archives.write(path, image, [rootfs.archive(recipe)])

    return cache.artefact(folder, cache.key_of(recipe.key, name), build)


def _fakegpu() -> Path:
    program = binaries.own("fakegpu")

    def build(path: Path) -> None:
        layer = path.with_suffix(".layer")
        archives.layer_of_files(layer, {"/fakegpu": program})
        archives.write(path, archives.Image(versions.FAKEGPU_IMAGE, entrypoint=["/fakegpu"]), [layer])
        layer.unlink()

    return cache.artefact("image-fakegpu", cache.key_of(program), build)


def _manager(program: str, name: str) -> Path:
    """An image of nothing but an upstream controller, which it starts as /manager."""
    binary = binaries.upstream(program)

    def build(path: Path) -> None:
        layer = path.with_suffix(".layer")
        archives.layer_of_files(layer, {"/manager": binary})
        archives.write(path, archives.Image(name, entrypoint=["/manager"], user=f"{_UID}:{_UID}"), [layer])
        layer.unlink()

    return cache.artefact(f"image-{program}", cache.key_of(program, name, binary.parent.name), build)


def requirements() -> str:
    """What the operator's image installs, as pip reads it: the lock if there is one, else the ranges of pyproject.toml."""
    lock = REPOSITORY / "requirements.lock"
    if lock.exists():
        return lock.read_text()
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
    return "\n".join([*project["dependencies"], *project["optional-dependencies"]["operator"]]) + "\n"


def _dependencies() -> Path:
    """The layer of Python packages from the index, compiled."""
    wanted = requirements()

    def build(path: Path) -> None:
        work = path.with_suffix(".work")
        cache.remove(work)
        work.mkdir()
        platform = ["--platform", "manylinux_2_28_x86_64", "--platform", "manylinux2014_x86_64", "--platform", "any"]
        abi = ["--abi", "cp313", "--abi", "abi3", "--abi", "none", "--python-version", "3.13"]
        pip = [_python(), "-m", "pip", "install", "-q", "--no-compile", "--only-binary=:all:", *platform, *abi]
        (work / "wanted.txt").write_text(wanted)
        run([*pip, "--target", work / _SITE, "-r", work / "wanted.txt"], timeout=900)
        (work / "wanted.txt").unlink()
        _compile(work)
        archives.layer_of_folder(path, work)
        cache.remove(work)

    return cache.artefact("layer-dependencies", cache.key_of("pip-3", PYTHON.key, wanted), build)


def _python() -> str:
    venv = REPOSITORY / ".venv/bin/python"
    return str(venv) if venv.exists() else "python3"


def _compile(folder: Path) -> None:
    """Compile the packages under `folder` with the image's Python: its root file system is read-only when it runs."""
    root = rootfs.folder(PYTHON)
    mount = 'mount --bind "$2" "$1/mnt" && shift 2 && exec chroot "$0" "$@"'
    compile_all = ["python3", "-m", "compileall", "-q", "-j", "2", "-s", "/mnt", "-p", "/", "--invalidation-mode"]
    compile_all += ["unchecked-hash", f"/mnt/{_SITE}"]
    spaces = ["unshare", "--mount", "--propagation", "private"]
    run([*spaces, "bash", "-c", mount, root, root, folder, *compile_all], timeout=300)


def _operator() -> Path:
    sources = [REPOSITORY / package for package in _PACKAGES]
    dependencies = _dependencies()
    image = archives.Image(
        versions.OPERATOR_IMAGE,
        entrypoint=["python3", "-m", "kubeslurm_operator"],
        user=f"{_UID}:{_UID}",
        environment={"PYTHONSAFEPATH": "1", "PYTHONUNBUFFERED": "1", "PYTHONDONTWRITEBYTECODE": "1"},
    )

    def build(path: Path) -> None:
        work, layer = path.with_suffix(".work"), path.with_suffix(".layer")
        cache.remove(work)
        (work / _SITE).mkdir(parents=True)
        for source in sources:
            run(["cp", "-r", source, work / _SITE], timeout=60)
        run(["find", work, "-name", "__pycache__", "-prune", "-exec", "rm", "-r", "{}", "+"], timeout=60)
        _compile(work)
        archives.layer_of_folder(layer, work)
        archives.write(path, image, [rootfs.archive(PYTHON), dependencies, layer])
        layer.unlink()
        cache.remove(work)

    key = cache.key_of("operator-2", str(image), dependencies.name, *sources)
    return cache.artefact("image-operator", key, build)


BUILDERS: dict[str, Callable[[], Path]] = {"slurm": _slurm, "operator": _operator, "fakegpu": _fakegpu}
BESIDE: dict[str, Callable[[], Path]] = {
    "accounting": _accounting,
    "contained": _contained,
    "kueue": lambda: _manager("kueue", versions.KUEUE_IMAGE),
    "training-operator": lambda: _manager("training-operator.v1", versions.TRAINING_OPERATOR_IMAGE),
}
"""Other people's controllers, and a database: built where a test asks for one."""


def archive(name: str) -> Path:
    """The archive of a known image, such as `slurm` or `operator`, or the file that `name` is the path of."""
    known = BUILDERS | BESIDE
    if name in known:
        return known[name]()
    path = Path(name)
    if not path.is_file():
        raise ValueError(f"{name}: neither an image of ours ({', '.join(known)}) nor an archive")
    return path


RECIPES = (PYTHON, slurm_recipe())


def build_all() -> None:
    """Build every image, and the root file systems of the bare Slurm."""
    for name in BUILDERS:
        archive(name)
    for accounting in (False, True):
        rootfs.folder(bare_recipe(accounting=accounting))
    rootfs.folder(contained_recipe())
