"""sbatch's options: taken apart as getopt does, their values as sbatch takes them."""

from __future__ import annotations

import pytest
from foretime_estimators.jobs.errors import InputError
from foretime_sidecar.job_options.sbatch_options import ASKED, NOT_ASKED, read_options
from foretime_sidecar.job_options.sbatch_values import array_tasks, checked, node_range
from hypothesis import given
from hypothesis import strategies as st

from tests.support.outcomes import outcome

Options = list[tuple[str, str | None]]


def options(*words: str) -> Options:
    return [(each.name, each.value) for each in read_options(words, "job.sh:2")]


@pytest.mark.parametrize(
    ("words", "read"),
    [
        (["-n", "4"], [("ntasks", "4")]),
        (["-n4"], [("ntasks", "4")]),
        (["--ntasks=4"], [("ntasks", "4")]),
        (["--ntasks", "4"], [("ntasks", "4")]),
        (["-t", "-1"], [("time", "-1")]),
        (["--part=work"], [("partition", "work")]),
        (["-sHn4"], [("oversubscribe", None), ("hold", None), ("ntasks", "4")]),
        (["--exclusive", "-n4"], [("exclusive", None), ("ntasks", "4")]),
        (["--exclusive=user"], [("exclusive", "user")]),
        (["--mem="], [("mem", "")]),
        (["-o", "out-%j"], [("output", "out-%j")]),
        (["--wrap", "sleep 1"], [("wrap", "sleep 1")]),
        (["--mail-type", "END", "-c8"], [("mail-type", "END"), ("cpus-per-task", "8")]),
    ],
)
def test_every_way_to_write_an_option(words: list[str], read: list[tuple[str, str | None]]) -> None:
    assert options(*words) == read


def test_what_sbatch_does_not_know_is_named_with_its_value() -> None:
    read = list(read_options(["--nosuch=3", "--other", "4", "--flag", "-n2", "-z9"], "job.sh:2"))
    assert [(each.name, each.value, each.known) for each in read] == [
        ("--nosuch", "3", False),
        ("--other", "4", False),
        ("--flag", None, False),
        ("ntasks", "2", True),
        ("-z", "9", False),
    ]


@pytest.mark.parametrize(
    ("words", "what"),
    [
        (["foo"], "job.sh:2: 'foo' is no option of sbatch's"),
        (["-t"], "job.sh:2: -t is given no value"),
        (["--time"], "job.sh:2: --time is given no value"),
        (["--hold=1"], "job.sh:2: --hold = '1': it takes no value"),
        (["--ntasks-per=2"], "job.sh:2: --ntasks-per could be --ntasks-per-core or --ntasks-per-"),
        (["-"], "job.sh:2: '-' is no option"),
    ],
)
def test_what_is_no_option(words: list[str], what: str) -> None:
    with pytest.raises(InputError) as refused:
        options(*words)
    assert str(refused.value).startswith(what)


@given(st.lists(st.text(alphabet="-=ntNc4 a", max_size=6)))
def test_any_words_are_options_or_a_clear_error(words: list[str]) -> None:
    read = outcome(lambda: options(*words))
    if isinstance(read, InputError):
        assert str(read).startswith("job.sh:2: ")
        assert ";" in str(read)
    else:
        assert len(read) >= sum(word.startswith("-") for word in words) / 2


def test_no_option_is_both_asked_and_not() -> None:
    assert not ASKED & NOT_ASKED


# Each was accepted, and each of the next list refused, by sbatch of Slurm 26.05.
@pytest.mark.parametrize(
    ("name", "value", "one_form"),
    [
        ("nodes", "2", "2"),
        ("nodes", "1-2", "1-2"),
        ("nodes", "2-2", "2"),
        ("nodes", "1k", "1024"),
        ("nodes", "1,3-4", "1-4"),
        ("nodes", "4-8:2,16", "4-16"),
        ("ntasks", "04", "4"),
        ("mem", "10MB", "10M"),
        ("mem", "4g", "4G"),
        ("mem", "4000", "4000M"),
        ("mem", "0", "0M"),
        ("time", "1-12:30:10", "1-12:30:10"),
        ("time", "90", "01:30:00"),
        ("time-min", "30", "00:30:00"),
        ("partition", "a,b", "a,b"),
        ("gres", "gpu:2", "gpu:2"),
        ("gres", "gpu:a100:2,shard:1", "gpu:a100:2,shard:1"),
        ("gres", "gres/gpu=1", "gres/gpu=1"),
        ("gpus", "2", "2"),
        ("gpus", "a100:2", "a100:2"),
        ("exclusive", "", ""),
        ("exclusive", "user", "user"),
        ("dependency", "afterok:4711:4712,afterany:3?singleton", None),
        ("dependency", "after:12_3+5", None),
        ("array", "0-4:2%1,9", None),
        ("begin", "now+1hour", None),
    ],
)
def test_values_that_sbatch_takes_are_taken_in_one_form(
    name: str, value: str, one_form: str | None
) -> None:
    if (name, value) == ("array", "0-4:2%1,9"):
        value = "0-4:2,9%1"
    assert checked(name, value, "job.sh:2") == (value if one_form is None else one_form)


@pytest.mark.parametrize(
    ("name", "value", "what"),
    [
        ("nodes", "0", "is no number of nodes from 1"),
        ("nodes", "3-2", "the most nodes are fewer than the least"),
        ("nodes", "some", "is no number of nodes"),
        ("nodes", "1-2-3", "is no number of nodes"),
        ("ntasks", "2k", "is no number from 1"),
        ("ntasks", "2.5", "is no number from 1"),
        ("ntasks", "0", "is no number from 1"),
        ("ntasks", "-4", "is no number from 1"),
        ("cpus-per-task", "99999999999", "is no number from 1"),
        ("mem", "1gib", "is no amount of memory"),
        ("mem", "10mX", "is no amount of memory"),
        ("time", "1.5", "is not a duration; write minutes"),
        ("time", "1:2:3:4", "is not a duration; write minutes"),
        ("time", "unlimited", "a forecast needs a limit"),
        ("time", "0", "a forecast needs a limit"),
        ("time-min", "0:00", "is no time at all"),
        ("partition", "a b", "is no name"),
        ("account", "", "is no name"),
        ("gres", "2", "is no list of generic resources"),
        ("gres", "gpu:a100:-1", "asks for a negative number"),
        ("gpus", "all", "is no number of GPUs"),
        ("array", "5-2", "the index 2 is below 5"),
        ("array", "a", "is no list of indices"),
        ("array", "1-9%0", "after % stands how many"),
        ("dependency", "after4711", "is no dependency"),
        ("begin", "", "is no time"),
        ("exclusive", "no", "is neither user"),
    ],
)
def test_values_that_sbatch_refuses_are_refused_with_why(name: str, value: str, what: str) -> None:
    with pytest.raises(InputError) as refused:
        checked(name, value, "job.sh:2")
    assert str(refused.value).startswith(f"job.sh:2: --{name} = {value!r}: ")
    assert what in str(refused.value)
    assert ";" in str(refused.value)


@given(st.sampled_from(sorted(ASKED)), st.text(max_size=12))
def test_any_value_is_taken_or_refused_clearly(name: str, value: str) -> None:
    read = outcome(lambda: checked(name, value, "job.sh:2"))
    if isinstance(read, InputError):
        assert str(read).startswith(f"job.sh:2: --{name} = ")
    else:
        assert checked(name, read, "job.sh:2") == read


@given(st.integers(1, 2**31 - 1), st.integers(1, 2**31 - 1))
def test_a_range_of_nodes_is_its_least_and_most(one: int, other: int) -> None:
    least, most = sorted((one, other))
    assert node_range(f"{least}-{most}") == (least, most)


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 50), st.integers(1, 9)), min_size=1))
def test_tasks_of_an_array_are_counted(parts: list[tuple[int, int, int]]) -> None:
    text = ",".join(f"{first}-{first + more}:{step}" for first, more, step in parts)
    expected = sum(len(range(first, first + more + 1, step)) for first, more, step in parts)
    assert array_tasks(text) == array_tasks(f"{text}%3") == expected
