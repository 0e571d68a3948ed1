"""The parser of batch scripts against sbatch itself: same options, same refusals."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

from slurmrest import SignedTokens, Slurm
from slurmrest.sbatch import BadScript, Options, read_options, read_script, write_line
from slurmrest.sbatch_table import ALIASES, LETTERS, OPTIONS, VARIABLES, WAIT_VARIABLE, Takes
from tests.cluster.slurm import BareSlurm
from tests.integration.pyslurm.releases import VERSIONS, available

pytestmark = pytest.mark.slurm

SHEBANG = "#!/bin/sh\n"
VOLATILE = re.compile(r"job_id|step_id|het_.*|.*_time|last_sched_evaluation|submit_line|standard_\w+|.*_expanded")
"""Fields that two jobs of the same options differ in."""

SCRIPTS = [
    "#SBATCH -N2\nsleep 1\n#SBATCH -J late\n",
    "#SBATCH -N 2\n#SBATCH --nodes 1\n",
    "#SBATCH --nodes=1 --ntasks=3 -c2 -J a -J b\n",
    "#SBATCH -Hn3\n",
    "#SBATCH --comment='a b' -J \"x y\"\n",
    "#SBATCH --comment=a#b -J c\n",
    "#SBATCH --comment=a\\#b\\ c -J c # --time=3\n",
    "#SBATCH --comment='a\\'b' -J c\n",
    "#SBATCH --comment='a#b\"c' -J q\n",
    "#SBATCH --comment='a\\tb'c\"d\"\n",
    "#SBATCH --comment='ab\n",
    "#SBATCH --comment= -J x\n",
    "#SBATCH --comment='' -J z\n",
    "#SBATCH '' -J z\n",
    "#SBATCH-J z\n",
    "#SBATCHx -J z\n",
    " #SBATCH -J z\n",
    "## SBATCH -J z\n##SBATCH -J y\n# SBATCH -J x\n#sbatch -J w\n",
    "#SBATCH foo -J z\n",
    "#SBATCH -J z foo\n#SBATCH -n3\n",
    "#SBATCH -J z -- -n3\n#SBATCH -n4\n",
    "#SBATCH -J z --\n",
    "#SBATCH -J z -\n",
    "#SBATCH --ntasks-per-n=3\n",
    "#SBATCH --tim=3\n",
    "#SBATCH --nosuch=3\n",
    "#SBATCH -Z\n",
    "#SBATCH --hold=3\n",
    "#SBATCH -J\n",
    "#SBATCH -J\n#SBATCH foo\n",
    "#SBATCH -J \\\n#SBATCH -n3\n",
    "\n   \n\t\n#SBATCH -J blank\n",
    "#SBATCH -J cr\r\n#SBATCH -n2\r\n",
    "#SBATCH -J cr\r-n2\n",
    "#SBATCH : -n2\n",
    "#SBATCH -n2 :\n#SBATCH -n3\n",
    "#SBATCH -n2\n#SBATCH 'hetjob'\n",
    "#SBATCH -n2\n#SBATCH hetjobs\n",
    "#SBATCH -n2 hetjob -n4\n#SBATCH -c3\n",
    "#SBATCH -n2 # hetjob\n#SBATCH -n3\n",
    "#SLURM -J x\n#SBATCH -n2\n",
    "#SBATCH -J=eq\n",
    "#SBATCH --exclusive user -J x\n",
    "#SBATCH --exclusive=user --nice=-0 -J x\n",
    "#SBATCH --nice --oversubscribe --no-requeue --requeue\n",
    "#SBATCH --requeue --no-requeue --exclusive\n",
    "#SBATCH --exclusive -s\n",
    "#SBATCH --mem=3 --mem-per-cpu=3\n",
    "#SBATCH -J x\v-n2\f-c3\n",
    ": <<E\n#SBATCH -J no\nE\n",
    "#SBATCH --gres=gpu:1 --gpus-per-node=h100:1 -t 1-2 --mem=2G -x n1 -C '' --signal=B:USR1@30\n",
    "#SBATCH --comment='\u00fcml\u00e4ut \u2603'\n",
    "#SBATCH --switches=1@5 -m cyclic:block --mail-type=END,FAIL --mail-user=a@b --kill-on-invalid-dep=yes\n",
]
"""What stands after the first line. None of them depends on who submits, or where."""


@pytest.fixture(scope="module", params=sorted(VERSIONS, reverse=True))
def slurm(request: pytest.FixtureRequest) -> Iterator[BareSlurm]:
    """Two nodes of each release; jobs are held, so that nothing runs."""
    available(request.param)
    with BareSlurm(nodes=2, gpus=2, suite=request.param) as running:
        yield running


@pytest.fixture(scope="module")
def client(slurm: BareSlurm) -> Iterator[Slurm]:
    """Reads the jobs back."""
    with Slurm(slurm.url, SignedTokens(slurm.jwt_key)) as made:
        yield made


def sbatch(slurm: BareSlurm, script: str, *words: str, environment: dict[str, str] | None = None) -> int | None:
    """The held job that sbatch makes of a script, or None if it refuses."""
    variables = [f"{name}={value}" for name, value in (environment or {}).items()]
    argv = ["env", *variables, "sbatch", "--parsable", "--hold", *words]
    said = slurm.run(*argv, user="alice", input=script, check=False)
    return int(said.stdout) if said.returncode == 0 else None


def stable(client: Slurm, job_id: int | None) -> list[dict[str, Any]] | None:
    """The components of a job without what differs from job to job."""
    if job_id is None:
        return None
    entries = client.request("GET", f"job/{job_id}").payload["jobs"]
    return [{name: value for name, value in one.items() if not VOLATILE.fullmatch(name)} for one in entries]


def rewritten(components: tuple[Options, ...]) -> str | None:
    """A script with just the options that count, as the parser understood them; None if it complained."""
    if any(one.complaints for one in components):
        return None
    parts = [
        "".join(f"{write_line(name, one.value)}\n" for name, one in component.last().items())
        for component in components
    ]
    return SHEBANG + "#SBATCH hetjob\n".join(parts)


@pytest.mark.parametrize("rest", SCRIPTS)
def test_a_script_is_read_as_sbatch_reads_it(slurm: BareSlurm, client: Slurm, rest: str) -> None:
    """What the parser understood, written down plainly, makes the same job; what it refuses, sbatch refuses."""
    try:
        plain = rewritten(read_script(SHEBANG + rest).components)
    except BadScript:
        plain = None
    expected = stable(client, sbatch(slurm, SHEBANG + rest))
    assert stable(client, sbatch(slurm, plain) if plain else None) == expected


def test_a_heterogeneous_script_is_read_as_sbatch_reads_it(slurm: BareSlurm, client: Slurm) -> None:
    """Every option in the first component that can stand alone; the second one inherits what it does with sbatch."""
    given = [
        "-A a -b now+1hour -D /var --comment=c --deadline=2031-02-03T04:05 --delay-boot=5 -d singleton -x n1 --extra=e",
        "--hint=nomultithread -J j --kill-on-invalid-dep=yes --mcs-label=m --mem=100 --nice=5 --no-requeue --prefer=f",
        "--profile=task -q q --reboot -t 5 --time-min=2 --wckey=w --contiguous -c2 --cpu-freq=1000 --exclusive -O",
        "-G1 --gres-flags=enforce-binding -L lic:1 --mincpus=2 --network=sn -w n0 -N1 -n2 -p main --tmp=5 --spread-job",
        "--switches=1 --use-min-nodes --ntasks-per-node=2 --signal=USR1@60 --tres-per-task=cpu=2 --cluster-constraint=x",
    ]
    for line in given:
        for words in [line, *re.split(r" (?=-)", line)]:
            text = f"{SHEBANG}#SBATCH {words}\n#SBATCH hetjob\n#SBATCH -n1\n#SBATCH hetjob\n"
            plain = rewritten(read_script(text).components)
            assert plain is not None
            # Written out, nothing is left to be inherited: each component says all of its own.
            assert stable(client, sbatch(slurm, plain)) == stable(client, sbatch(slurm, text)), words


def test_environment_and_command_line_win_as_with_sbatch(slurm: BareSlurm, client: Slurm) -> None:
    """The same job from one plain script as from all three places. A variable may take an option back."""
    script = SHEBANG + "#SBATCH -J script -q script --comment=script -t 5 --exclusive --no-requeue --use-min-nodes\n"
    environment = {
        "SBATCH_JOB_NAME": "environment",
        "SBATCH_QOS": "environment",
        "SBATCH_NO_REQUEUE": "0",
        "SBATCH_SPREAD_JOB": "yes",
        "SBATCH_USE_MIN_NODES": "no",
        "SBATCH_EXCLUSIVE": "user",
        "SBATCH_REQ_SWITCH": "1",
        "SBATCH_WAIT4SWITCH": "2",
        "SBATCH_OVERCOMMIT": "",
    }
    arguments = ["-J", "argument", "--ntasks=2"]
    plain = rewritten(read_options(script, environment, arguments))
    assert plain is not None
    expected = stable(client, sbatch(slurm, script, *arguments, environment=environment))
    assert expected is not None
    assert stable(client, sbatch(slurm, plain)) == expected


def known_to_sbatch(slurm: BareSlurm) -> set[str]:
    """Every long name: sbatch lists those that a single letter may stand for."""
    loop = (
        "for one in a b c d e f g h i j k l m n o p q r s t u v w x y z; do sbatch --$one=zz /dev/null 2>&1; done; true"
    )
    said = slurm.run("sh", "-c", loop).stdout
    listed = {word for line in re.findall(r"possibilities: (.*)", said) for word in re.findall(r"'--([a-z-]+)'", line)}
    return listed | {name for name in OPTIONS if name[0] in "jkl"}  # letters with one name only


def kinds(slurm: BareSlurm, words: list[str], glued: str) -> dict[str, Takes | None]:
    """Whether each option, as it is written here, takes a value with this sbatch; None: it does not know it."""
    loop = 'for one do echo "== $one"; sbatch "$one" 2>&1 </dev/null; sbatch "$one"$GLUED 2>&1 </dev/null; done; true'
    said = slurm.run("env", f"GLUED={glued}", "sh", "-c", loop, "kinds", *words, timeout=120).stdout
    found: dict[str, Takes | None] = {}
    for part in said.split("== ")[1:]:
        word, _, text = part.partition("\n")
        if "unrecognized option" in text or "invalid option" in text:  # "unrecognized value" is something else
            found[word] = None
        elif "requires an argument" in text:
            found[word] = Takes.REQUIRED
        else:
            found[word] = Takes.NO if "doesn't allow an argument" in text else Takes.OPTIONAL
    return found


def test_the_table_has_every_option_of_sbatch(slurm: BareSlurm) -> None:
    """No name is missing, and none is there that this release lacks."""
    known = known_to_sbatch(slurm)
    assert known >= {"array", "time-min", "wrap"}
    assert known == {name for name in [*OPTIONS, *ALIASES] if name in known or not OPTIONS[name].since}


def test_the_table_knows_which_options_take_a_value(slurm: BareSlurm) -> None:
    """Names and letters; `--requeue` takes one since 26.05, `--get-user-env` took one until then."""
    names = {f"--{name}": option.takes for name, option in OPTIONS.items() if not option.since}
    wrong = {name: kind for name, kind in kinds(slurm, list(names), "=x").items() if kind is not names[name]}
    assert wrong in ({"--requeue": Takes.NO}, {"--get-user-env": Takes.NO})
    letters = kinds(slurm, [f"-{letter}" for letter in "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"], "")
    assert {word[1] for word, kind in letters.items() if kind} == set(LETTERS)
    needy = {letter for letter, option in LETTERS.items() if option.takes is Takes.REQUIRED}
    assert {word[1] for word, kind in letters.items() if kind is Takes.REQUIRED} == needy


def test_the_table_has_every_variable_of_sbatch(slurm: BareSlurm) -> None:
    """As the program names them."""
    said = slurm.run("grep", "-aoE", r"\bSBATCH_[A-Z0-9_]+\b", "/usr/bin/sbatch").stdout
    known = set(VARIABLES) | {WAIT_VARIABLE}
    newer = {option.variable for option in OPTIONS.values() if option.since}
    assert set(said.split()) - known <= {"SBATCH_POWER"}  # its option is gone, and it does nothing
    assert known - set(said.split()) <= newer | {"SBATCH_SEGMENT_SIZE"}
