"""Directives of batch scripts: as sbatch reads them, and whatever is in the file."""

from __future__ import annotations

import pytest
from foretime_estimators.jobs.errors import InputError
from foretime_sidecar.job_options.batch_script import read_script, split_words
from hypothesis import given
from hypothesis import strategies as st

from tests.support.outcomes import outcome


# What sbatch of Slurm 26.05 made of each, seen in scontrol show job.
@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('--comment="a b"', ["--comment=a b"]),
        (r"--comment='a \' b'", ["--comment=a ' b"]),
        (r'--comment="a \" b"', ['--comment=a " b']),
        (r"--comment=a\ b", ["--comment=a b"]),
        ("--comment=a#b", ["--comment=a"]),
        ('--comment="a#b"', ["--comment=a#b"]),
        (r"--comment=a\#b", ["--comment=a#b"]),
        ('--comment="a"b', ["--comment=ab"]),
        ("--comment=x'y z'w", ["--comment=xy zw"]),
        ("--comment=ab #c", ["--comment=ab"]),
        ("--comment=a\tb", ["--comment=a", "b"]),
        ('"--comment=q"', ["--comment=q"]),
        (r"--comment=a\\b", [r"--comment=a\b"]),
        ('-n2 --comment=""', ["-n2", "--comment="]),
        ("--comment=tail\\", ["--comment=tail"]),
        ("", []),
        ("  # nothing", []),
        ("''", [""]),
    ],
)
def test_words_are_split_as_sbatch_splits_them(text: str, words: list[str]) -> None:
    assert list(split_words(text, "job.sh:2")) == words


def quoted(word: str, quote: str) -> str:
    if quote:
        return quote + word.replace("\\", "\\\\").replace(quote, "\\" + quote) + quote
    return "".join(f"\\{letter}" for letter in word)


@given(
    st.lists(
        st.tuples(
            st.text(st.characters(exclude_characters="\n", exclude_categories=["Cs"])),
            st.sampled_from(["'", '"', ""]),
        ).filter(lambda pair: pair[0] or pair[1])
    )
)
def test_whatever_is_quoted_comes_back(words: list[tuple[str, str]]) -> None:
    line = " ".join(quoted(word, quote) for word, quote in words)
    assert list(split_words(line, "job.sh:2")) == [word for word, _ in words]


@given(st.text(alphabet="ab -=\"'\\#\t"))
def test_any_line_is_words_or_an_open_quote(text: str) -> None:
    words = outcome(lambda: split_words(text, "job.sh:2"))
    if isinstance(words, InputError):
        assert "is left open; close it" in str(words)
    else:
        assert sum(map(len, words)) <= len(text)


@given(st.text())
def test_any_file_is_a_script_or_a_clear_error(text: str) -> None:
    script = outcome(lambda: read_script(text, "job.sh"))
    if isinstance(script, InputError):
        assert str(script).startswith("job.sh:")
        assert ";" in str(script)
    else:
        assert text.startswith("#!")
        lines = text.count("#SBATCH") + text.count("#PBS")
        assert len(script.slurm) + len(script.pbs) <= lines


def test_directives_end_at_the_first_command() -> None:
    script = read_script(
        "#!/bin/sh\n"
        "#SBATCH -t 7\n"
        "  # a remark\n"
        "\n"
        " #SBATCH --comment=indented lines are remarks\n"
        "#SBATCH--mem=4G\n"
        "cd /scratch\n"
        "#SBATCH -t 9\n",
        "job.sh",
    )
    assert [(line.words, line.where) for line in script.slurm] == [
        (("-t", "7"), "job.sh:2"),
        (("--mem=4G",), "job.sh:6"),
    ]
    assert (script.pbs, script.notes) == ((), ())


def test_lines_for_pbs_may_be_indented() -> None:
    script = read_script("#!/bin/sh\n #PBS -q work\n#PBS -N x\n", "job.sh")
    assert [line.words for line in script.pbs] == [("-q", "work"), ("-N", "x")]


def test_only_the_first_component_of_a_heterogeneous_job_is_read() -> None:
    script = read_script("#!/bin/sh\n#SBATCH -n 1\n#SBATCH hetjob\n#SBATCH -n 9\n", "job.sh")
    assert [line.words for line in script.slurm] == [("-n", "1")]
    assert script.notes == ("job.sh:3: components after the first, which is asked about alone",)


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("sleep 1\n", "job.sh:1: a batch script begins with #!"),
        ("\n#!/bin/sh\n", "job.sh:1: a batch script begins with #!"),
        ("#!/bin/sh\r\nsleep 1\r\n", "job.sh:1: the line ends as on Windows"),
        ("#!/bin/sh\n#SBATCH --comment 'a\n", "job.sh:2: the quote ' in \"--comment 'a\""),
    ],
)
def test_what_sbatch_refuses_is_refused_where_it_stands(text: str, what: str) -> None:
    with pytest.raises(InputError) as refused:
        read_script(text, "job.sh")
    assert str(refused.value).startswith(what)
