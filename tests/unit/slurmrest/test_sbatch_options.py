"""The parser of `#SBATCH` lines, SBATCH_* variables and sbatch's command line."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurmrest.sbatch import BadScript, Options, read_arguments, read_environment, read_options, read_script, write_line
from slurmrest.sbatch_table import ALIASES, LETTERS, OPTIONS, VARIABLES, Takes

SHEBANG = "#!/bin/sh\n"

NAMES = st.sampled_from(sorted(OPTIONS))
VALUES = st.text(st.characters(exclude_characters="\n\r\0", exclude_categories=["Cs"]), min_size=1, max_size=30)


def options(*lines: str) -> Options:
    """The options of a plain script with these lines after its first one."""
    (component,) = read_script(SHEBANG + "".join(f"{line}\n" for line in lines)).components
    return component


def pairs(read: Options) -> list[tuple[str, str | None]]:
    """Name and value of each option, in order."""
    return [(one.option.name, one.value) for one in read.given]


@pytest.mark.parametrize("line", ["-N2", "-N 2", "--nodes=2", "--nodes 2", "--nodes='2'", '-N "2"', "-HN2"])
def test_every_way_to_write_a_value_reads_the_same(line: str) -> None:
    """Glued to the letter, after a space, after `=`, quoted, behind another letter."""
    assert options(f"#SBATCH {line}").value("nodes") == "2"


def test_reading_stops_at_the_first_command() -> None:
    """Blank lines and comments are passed over, a command ends it, and so does a here document."""
    read = options("", "  ", "# a comment", "#SBATCH -J first", "  # another", "#SBATCH -n1", "true", "#SBATCH -J late")
    assert pairs(read) == [("job-name", "first"), ("ntasks", "1")]


def test_the_last_of_an_option_wins() -> None:
    """All are kept in order, and one counts."""
    read = options("#SBATCH -n1 --ntasks 2", "#SBATCH -n3")
    assert (len(read.given), read.value("ntasks")) == (3, "3")


def test_of_two_opposites_the_later_one_counts() -> None:
    """They are two names for one setting, whichever comes first."""
    assert list(options("#SBATCH --no-requeue", "#SBATCH --requeue").last()) == ["requeue"]
    assert list(options("#SBATCH --requeue", "#SBATCH --no-requeue").last()) == ["no-requeue"]


def test_a_variable_wins_over_its_opposite_in_the_script() -> None:
    """What a script and a command line may not say together, the environment may change."""
    script = SHEBANG + "#SBATCH --oversubscribe --mem=3\n"
    (read,) = read_options(script, {"SBATCH_EXCLUSIVE": "user", "SBATCH_MEM_PER_CPU": "5"})
    assert (set(read.last()), read.complaints) == ({"mem", "mem-per-cpu", "exclusive"}, ())


@pytest.mark.parametrize(("one", "other"), [("exclusive", "oversubscribe"), ("mem=1", "mem-per-gpu=2")])
def test_a_contradiction_is_a_complaint(one: str, other: str) -> None:
    """Within the script, and between it and the command line."""
    name, word = one.partition("=")[0], other.partition("=")[0]
    within = options(f"#SBATCH --{one}", f"#SBATCH --{other}")
    (across,) = read_options(f"{SHEBANG}#SBATCH --{one}\n", {}, [f"--{other}"])
    expected = f"not together with --{name}: --{word}"
    assert [str(c) for c in within.complaints] == [f"line 3: {expected}"]
    assert [str(c) for c in across.complaints] == [f"argument 1: {expected}"]


@pytest.mark.parametrize(
    ("line", "value"),
    [
        ("'a b'", "a b"),
        ('"a b"', "a b"),
        ("a\\ b", "a b"),
        ("a'b c'\"d\"", "ab cd"),
        ("'a\\'b'", "a'b"),
        ("'a\"b'", 'a"b'),
        ("'a\\tb'", "atb"),
        ("a\\#b", "a#b"),
        ("'a#b'", "a#b"),
        ("a#b", "a"),
        ("a # b", "a"),
        ("a\\", "a"),
        ("''", ""),
        ("a\u00a0b", "a\u00a0b"),
    ],
)
def test_quotes_and_comments_are_those_of_sbatch(line: str, value: str) -> None:
    """A backslash counts within both kinds of quotes, and a bare `#` begins a comment even in mid-word."""
    assert options(f"#SBATCH --comment={line}").value("comment") == value


@pytest.mark.parametrize("line", [" #SBATCH -J x", "##SBATCH -J x", "# SBATCH -J x", "#sbatch -J x", "#SBATCH #-J x"])
def test_what_only_resembles_an_option_line_is_a_comment(line: str) -> None:
    """The line begins with exactly `#SBATCH`."""
    assert options(line) == Options()


def test_a_line_needs_no_space_after_its_magic_word() -> None:
    """As sbatch has it; and `#SLURM` is taken too."""
    assert pairs(options("#SBATCH-J x", "#SLURM -n2")) == [("job-name", "x"), ("ntasks", "2")]


def test_a_value_may_stand_on_the_next_line() -> None:
    """sbatch puts the words of all lines into one row before it looks at them."""
    read = options("#SBATCH -J", "#SBATCH name", "#SBATCH -J \\", "#SBATCH -n3")
    assert pairs(read) == [("job-name", "name"), ("job-name", "-n3")]


def test_an_empty_word_ends_its_line() -> None:
    """And only that line."""
    assert pairs(options("#SBATCH '' -J x", "#SBATCH -n1")) == [("ntasks", "1")]


def test_an_optional_value_is_never_the_next_word() -> None:
    """`--exclusive user` is an option and a word too much."""
    read = options("#SBATCH --exclusive user", "#SBATCH --exclusive=mcs --nice=-5", "#SBATCH --no-kill -koff")
    assert pairs(read) == [
        ("exclusive", None),
        ("exclusive", "mcs"),
        ("nice", "-5"),
        ("no-kill", None),
        ("no-kill", "off"),
    ]
    assert [str(one) for one in read.complaints] == ["line 2: not an option: user"]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("--nosuch=1", "an unknown option: --nosuch=1"),
        ("-Z", "an unknown option: -Z"),
        ("foo", "not an option: foo"),
        ("-", "not an option: -"),
        ("-- -n3", "not an option: -n3"),
        ("--hold=1", "takes no value: --hold=1"),
        ("-J", "needs a value: -J"),
        ("--=3", "an unknown option: --=3"),
    ],
)
def test_what_sbatch_refuses_is_named_with_its_line(line: str, reason: str) -> None:
    """Each complaint tells where and why."""
    assert [str(one) for one in options(f"#SBATCH {line}").complaints] == [f"line 2: {reason}"]


def test_the_beginning_of_several_names_is_a_complaint() -> None:
    """An exact name is none, though others begin with it."""
    assert [one.reason for one in options("#SBATCH --tim=3").complaints] == ["could be any of --time, --time-min"]
    assert options("#SBATCH --time=3").complaints == ()


@pytest.mark.parametrize("name", ["tasks-per-node", "ntasks-per-n"])
def test_a_further_name_or_the_beginning_of_one_is_its_option(name: str) -> None:
    """`--tasks-per-node` is `--ntasks-per-node`."""
    assert options(f"#SBATCH --{name}=4").value("ntasks-per-node") == "4"


def test_a_heterogeneous_job_has_a_component_for_each_part() -> None:
    """A part inherits what describes the whole job, such as its name, and not what it asks for."""
    text = SHEBANG + "#SBATCH -J all -n2 -t 5\n#SBATCH hetjob\n#SBATCH -n3\n#SBATCH packjob\n#SBATCH -J third\n"
    found = [{name: one.value for name, one in each.last().items()} for each in read_script(text).components]
    assert found == [
        {"job-name": "all", "ntasks": "2", "time": "5"},
        {"job-name": "all", "ntasks": "3", "time": "5"},
        {"job-name": "third", "time": "5"},
    ]


@pytest.mark.parametrize(("line", "components"), [("#SBATCH -n2 hetjob -n3", 1), ("#SBATCHhetjob -n3", 2)])
def test_only_a_line_that_begins_with_the_separator_separates(line: str, components: int) -> None:
    """Elsewhere the word ends its line as a comment would."""
    read = read_script(f"{SHEBANG}#SBATCH -n1\n{line}\n#SBATCH -c4\n").components
    assert (len(read), "3" in {one.value for each in read for one in each.given}) == (components, False)


def test_a_quoted_separator_is_a_word() -> None:
    """So it is refused like any other."""
    assert [one.word for one in options("#SBATCH 'hetjob'").complaints] == ["hetjob"]


def test_lines_for_other_schedulers_are_shown_and_not_read() -> None:
    """sbatch would translate some; whoever takes over the script is told instead."""
    read = read_script(SHEBANG + "#PBS -N x\n#BSUB -J y\n#SBATCH -n1\n")
    assert (read.foreign, pairs(read.components[0])) == (((2, "#PBS -N x"), (3, "#BSUB -J y")), [("ntasks", "1")])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the script is empty"),
        (" \n\t\n", "the script holds only white space"),
        ("#SBATCH -n1\n", "line 1: a batch script begins with #! and the path of an interpreter"),
        ("\ufeff#!/bin/sh\n", "line 1: a batch script begins with #! and the path of an interpreter"),
        ("#!/bin/sh\n#SBATCH -n1\r\n", "line 2: the script holds a DOS line break (\\r\\n)"),
        ("#!/bin/sh\n\n\0", "line 3: the script holds a NUL character"),
        ("#!/bin/sh\n#SBATCH --comment='a\n", "line 2: a quote ' is not closed"),
        ("#!/bin/sh\n#SBATCH -n1 : -n2\n", "line 2: a word may not begin with a colon"),
    ],
)
def test_what_is_no_script_is_refused(text: str, message: str) -> None:
    """Where sbatch stops, nothing half read is returned."""
    with pytest.raises(BadScript) as caught:
        read_script(text)
    assert str(caught.value) == message


def test_variables_set_options() -> None:
    """With the value they hold, even an empty one; others than SBATCH_* do not."""
    read = read_environment({"SBATCH_JOB_NAME": "x", "SBATCH_EXCLUSIVE": "", "HOME": "/"})
    assert sorted(pairs(read)) == [("exclusive", ""), ("job-name", "x")]


@pytest.mark.parametrize(
    ("value", "is_set"),
    [("", True), ("yes", True), ("YES", True), ("1", True), ("-1", True), (" 2", True), ("0", False), ("00", False)]
    + [(value, False) for value in ("no", "true", "set", "y", "1x", "0.5")],
)
def test_a_variable_of_an_option_without_a_value_is_a_switch(value: str, is_set: bool) -> None:
    """As sbatch reads it: "true" is nothing, and takes back even what the script says."""
    (read,) = read_options(SHEBANG + "#SBATCH -O\n", {"SBATCH_OVERCOMMIT": value})
    assert ("overcommit" in read.last()) is is_set
    assert ("overcommit" in read_environment({"SBATCH_OVERCOMMIT": value}).last()) is is_set


def test_the_wait_for_switches_has_a_variable_of_its_own() -> None:
    """It is the second half of the option's value, and nothing alone."""
    both = {"SBATCH_REQ_SWITCH": "2", "SBATCH_WAIT4SWITCH": "60"}
    assert pairs(read_environment(both)) == [("switches", "2@60")]
    assert pairs(read_environment({"SBATCH_WAIT4SWITCH": "60"})) == []


def test_command_line_wins_over_environment_and_that_over_the_script() -> None:
    """The order of sbatch(1)."""
    script = SHEBANG + "#SBATCH -J script -q script -A script\n"
    environment = {"SBATCH_JOB_NAME": "environment", "SBATCH_QOS": "environment"}
    (read,) = read_options(script, environment, ["-J", "argument"])
    assert [read.value(name) for name in ("job-name", "qos", "account")] == ["argument", "environment", "script"]
    origins = {name: one.origin for name, one in read.last().items()}
    assert origins == {"job-name": "argument 1", "qos": "SBATCH_QOS", "account": "line 2"}


def test_an_option_that_is_not_given_has_the_default() -> None:
    """None unless the caller says otherwise."""
    assert (Options().value("nodes"), Options().value("nodes", "1")) == (None, "1")
    assert options("#SBATCH --hold").value("hold") == ""


@given(st.lists(st.tuples(NAMES, VALUES), max_size=6))
def test_written_lines_read_back_as_they_were(wanted: list[tuple[str, str]]) -> None:
    """Whatever a value holds: quotes, spaces, backslashes, `#`, colons, other scripts."""
    given_ = [(name, None if OPTIONS[name].takes is Takes.NO else value) for name, value in wanted]
    read = options(*(write_line(name, value) for name, value in given_))
    assert (pairs(read), read.complaints) == (given_, ())


@given(st.lists(st.tuples(NAMES, VALUES), max_size=6))
def test_command_lines_read_as_the_words_they_are(wanted: list[tuple[str, str]]) -> None:
    """A shell has taken the quotes away already: a `#` or a quote in a word is part of it."""
    given_ = [(name, value) for name, value in wanted if OPTIONS[name].takes is Takes.REQUIRED]
    words = [word for name, value in given_ for word in (f"--{name}", value)]
    assert pairs(read_arguments(words)) == given_


@given(st.text(max_size=80))
def test_no_text_breaks_the_parser(text: str) -> None:
    """It reads, or says what is wrong."""
    try:
        read = read_script(f"{SHEBANG}#SBATCH {text}")
    except BadScript:
        return
    assert all(one.option.name in OPTIONS for each in read.components for one in each.given)


@pytest.mark.parametrize(
    ("name", "value"), [("comment", "a\nb"), ("comment", "a\0b"), ("comment", None), ("hold", "1"), ("comment", "a\rb")]
)
def test_what_no_line_can_hold_is_not_written(name: str, value: str | None) -> None:
    """A line break would begin another line of the script."""
    with pytest.raises(ValueError, match=f"--{name}"):
        write_line(name, value)


def test_names_letters_and_variables_are_unique() -> None:
    """Each leads to one option."""
    every = list(OPTIONS.values())
    assert len(LETTERS) == len([one for one in every if one.letter])
    assert len(VARIABLES) == len([one for one in every if one.variable])
    assert not set(ALIASES) & set(OPTIONS)
