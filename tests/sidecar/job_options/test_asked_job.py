"""The job that a forecast is asked for: command line, environment, scripts of both kinds."""

from __future__ import annotations

import re

import pytest
from foretime_estimators.jobs.errors import InputError
from foretime_sidecar.job_options.batch_script import read_script
from foretime_sidecar.job_options.job_request import AskedJob, asked_job, is_job_id
from foretime_sidecar.job_options.sbatch_options import ASKED, OF_CHUNKS
from foretime_sidecar.job_options.sbatch_values import array_tasks
from hypothesis import given
from hypothesis import strategies as st

from tests.support.outcomes import outcome

NOW = 1_800_000_000


def asked(
    text: str = "", command_line: dict[str, str] | None = None, **environment: str
) -> AskedJob:
    script = read_script(f"#!/bin/bash\n{text}", "job.sh") if text else None
    return asked_job(command_line or {}, environment, script, NOW)


def test_the_command_line_goes_before_the_environment_before_the_script() -> None:
    job = asked(
        "#SBATCH -n 4 -p work --time=1-0\n#SBATCH -A physics\n#SBATCH --mem=4G -o out-%j\n",
        {"ntasks": "8"},
        SBATCH_PARTITION="other",
        SBATCH_TIMELIMIT="90",
        SBATCH_OUTPUT="x",
    )
    assert job.options == {
        "ntasks": "8",
        "partition": "other",
        "time": "01:30:00",
        "account": "physics",
        "mem": "4G",
    }
    assert job.notes == ()


def test_options_become_the_parameters_of_the_question() -> None:
    job = asked(
        "#SBATCH -N 2-4 --ntasks-per-node=8 -c 2 -t 60 --exclusive -b now+1hour\n"
        "#SBATCH --gres=shard:1 --gpus-per-node=a100:2 -a 0-9%2 -d afterok:4711\n"
    )
    assert job.parameters(NOW) == {
        "nodes": "2-4",
        "ntasks_per_node": "8",
        "cpus_per_task": "2",
        "time": "01:00:00",
        "exclusive": "true",
        "begin": str(NOW + 3600),
        "gres": "shard:1,gpu:a100:2",
        "dependency": "afterok:4711",
    }
    assert job.notes == ("an array of 10 tasks: said is when the first one starts",)
    assert asked("", {"time": "1"}).parameters(NOW) == {"time": "00:01:00", "ntasks": "1"}


def test_what_is_not_looked_at_is_named() -> None:
    job = asked(
        "#SBATCH --constraint=haswell -t 5\n#SBATCH --nosuch=1 --mail-type=END -H\n"
        "#SBATCH hetjob\n#SBATCH -n 99\n"
    )
    assert job.notes == (
        "not looked at: job.sh:4: components after the first, which is asked about alone",
        "not looked at: job.sh:2: --constraint=haswell",
        "not known, and ignored: job.sh:3: --nosuch=1",
        "not looked at: job.sh:3: --hold",
    )


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("-l select=2:ncpus=8:mpiprocs=8:mem=16gb,walltime=1:00:00", {"ntasks": "16"}),
        ("-lselect=2:ncpus=8 -l place=scatter -l walltime=1:00:00", {"ntasks": "16", "nodes": "2"}),
        ("-l select=1:ncpus=4+3:ncpus=2:host=n1 -l walltime=3600", {"ntasks": "10"}),
        ("-l nodes=2:ppn=8,walltime=60:00", {"ntasks": "16", "nodes": "2"}),
        ("-l nodes=node01:ppn=4+2:ppn=8,walltime=0:1:0:0", {"ntasks": "20", "nodes": "3"}),
        (
            "-l nodes=2:ppn=8\n#PBS -l walltime=1:00:00,nodes=1:ppn=4",
            {"ntasks": "16", "nodes": "2"},
        ),
        ("-l ncpus=8 -l walltime=1:00:00", {"ntasks": "8"}),
        ("-l procs=32 -l walltime=1:00:00", {"ntasks": "32"}),
        ("-l select=4,walltime=1:00:00 -l place=excl", {"ntasks": "4", "exclusive": ""}),
        ("-q work@pbs1 -l walltime=1:00:00", {"partition": "work"}),
        ("-q @pbs1 -l walltime=1:00:00", {}),
        ("-A chem -P phys -l walltime=1:00:00", {"account": "chem"}),
        ("-P phys -l walltime=1:00:00", {"account": "phys"}),
        ("-P _pbs_project_default -l walltime=1:00:00", {}),
        ("-J 1-99:2 -l walltime=1:00:00", {"array": "1-99:2"}),
        ("-t 0-9%3 -l walltime=1:00:00", {"array": "0-9%3"}),
        (
            "-W depend=afterok:12.pbs1:13,block=true -l walltime=1:00:00",
            {"dependency": "afterok:12:13"},
        ),
        (
            "-W umask=022,depend=afterany:12[].pbs1,afterok:3 -l walltime=1:00:00",
            {"dependency": "afterany:12,afterok:3"},
        ),
        ("-a 202701151800 -N name -j oe -V -m abe -l walltime=1:00:00", {"begin": None}),
        ("-VN name -l walltime=1:00:00", {}),
    ],
)
def test_lines_for_pbs_are_read_in_words_of_sbatch(
    text: str, options: dict[str, str | None]
) -> None:
    job = asked(f"#PBS {text}\n")
    found = dict(job.options)
    assert found.pop("time") == "01:00:00"
    for name in OF_CHUNKS:
        written = re.search(rf"(?:-l *|,){name}=([^ ,]+)", text) if "select" in text else None
        assert found.pop(name, None) == (written and written[1])
    if options == {"begin": None}:
        assert found.pop("begin").startswith("uts")
        options = {}
    assert found == options


def test_the_command_line_takes_resources_as_qsub_does() -> None:
    size = {"ntasks": "16", "select": "2:ncpus=8:mem=4gb"}
    text = f"select={size['select']},place=pack,walltime=2:00:00,software=x"
    job = asked("#SBATCH -N 4 -c 2 -t 5 -p work\n", {"resources": text, "account": "chem"})
    rest = {"time": "02:00:00", "partition": "work", "account": "chem", "place": "pack"}
    assert job.options == size | rest
    assert job.parameters(NOW) == job.options
    assert job.notes == ("not looked at: command line: -l software=x",)
    # A size on the command line takes the place of a script's chunks.
    script = "#PBS -l select=2:ncpus=8,place=scatter,walltime=1:00:00\n"
    assert asked(script, {"ntasks": "4"}).options == {
        "time": "01:00:00",
        "nodes": "2",
        "ntasks": "4",
    }
    assert asked(script, {"resources": "walltime=60"}).options == {
        "time": "00:01:00",
        "nodes": "2",
        "ntasks": "16",
        "select": "2:ncpus=8",
        "place": "scatter",
    }


def test_what_is_not_looked_at_of_pbs() -> None:
    job = asked("#PBS -l walltime=9,mem=4gb -l software=x -h -p 5 -W depend=on:2 -Z 3 -k oe\n")
    assert job.notes == (
        "not known, and ignored: job.sh:2: -Z=3",
        "not looked at: job.sh:2: -l mem=4gb",
        "not looked at: job.sh:2: -l software=x",
        "not looked at: job.sh:2: -h",
        "not looked at: job.sh:2: -p=5",
        "not looked at: job.sh:2: -W depend=on:2",
    )


def test_a_script_for_both_is_read_as_sbatch_reads_it() -> None:
    job = asked(
        "#SBATCH -t 7 -N 2 --ntasks-per-node=4 -p work\n#PBS -l walltime=0:05:00,select=1:ncpus=4\n"
    )
    assert job.options == {
        "time": "00:05:00",
        "partition": "work",
        "ntasks": "4",
        "select": "1:ncpus=4",
    }


@pytest.mark.parametrize(
    ("text", "command_line", "what"),
    [
        ("#SBATCH -n 4\n#SBATCH -t soon\n", {}, "job.sh:3: --time = 'soon': is not a duration"),
        ("", {"nodes": "2-1"}, "command line: --nodes = '2-1': the most nodes are fewer"),
        ("", {"resources": "select=2:ncpus=x"}, "command line: -l select=2:ncpus=x: 'x' is no"),
        ("", {"resources": "walltime=soon"}, "command line: -l walltime: 'soon' is no duration"),
        ("", {"resources": "=4"}, "command line: -l = '=4': '=4' names no resource"),
        ("#PBS -l walltime=soon\n", {}, "job.sh:2: -l walltime: 'soon' is no duration"),
        ("#PBS -l walltime=0\n", {}, "job.sh:2: -l walltime = '0' is no time at all"),
        (
            "#PBS -l select=2:ncpus=x\n",
            {},
            "job.sh:2: -l select=2:ncpus=x: 'x' is no number of processors",
        ),
        ("#PBS -l select=2:ncpus=0\n", {}, "job.sh:2: -l select=2:ncpus=0: no processors at all"),
        ("#PBS -l =4\n", {}, "job.sh:2: -l = '=4': '=4' names no resource"),
        ("#PBS -l\n", {}, "job.sh:2: -l is given no value"),
        ("#PBS work\n", {}, "job.sh:2: 'work' is no option of qsub's"),
        ("#PBS -a tomorrow\n", {}, "job.sh:2: -a = 'tomorrow' is no time"),
        ("#PBS -J x\n", {}, "job.sh:2: --array = 'x': is no list of indices"),
    ],
)
def test_what_the_scheduler_would_refuse_is_refused_where_it_stands(
    text: str, command_line: dict[str, str], what: str
) -> None:
    with pytest.raises(InputError) as refused:
        asked(text, command_line)
    assert str(refused.value).startswith(what)
    assert ";" in str(refused.value)


def test_a_variable_that_is_wrong_is_named() -> None:
    with pytest.raises(InputError, match="SBATCH_TIMELIMIT: --time = 'x'"):
        asked("", {}, SBATCH_TIMELIMIT="x")


def test_a_forecast_needs_a_limit() -> None:
    with pytest.raises(InputError, match="the time limit is missing; give --time"):
        asked("", {"ntasks": "4"}).parameters(NOW)


@pytest.mark.parametrize(
    "text", ["123", "123_4", "123[]", "123[4]", "123.pbs1", "123[].pbs-1.site.org", "123[4].s"]
)
def test_ids_of_both_schedulers_are_taken_for_ids(text: str) -> None:
    assert is_job_id(text)


@pytest.mark.parametrize("text", ["job.sh", "./123", "123_", "12a", "", "-1", "123.", "123_[1-4]"])
def test_what_is_no_id(text: str) -> None:
    assert not is_job_id(text)


@given(
    st.lists(
        st.tuples(st.sampled_from(["#SBATCH", "#PBS"]), st.text("-lWqtnN=:, 0123ast", max_size=20))
    )
)
def test_any_directives_are_a_job_or_a_clear_error(lines: list[tuple[str, str]]) -> None:
    text = "".join(f"{kind} {rest}\n" for kind, rest in lines)
    job = outcome(lambda: asked(text or "#\n"))
    if isinstance(job, InputError):
        assert str(job).startswith("job.sh:")
    else:
        assert job.options.keys() <= ASKED
        assert "array" not in job.options or array_tasks(job.options["array"]) > 0


def test_what_is_no_time_to_begin_at_is_named() -> None:
    job = asked_job({"time": "10", "begin": "yesterdayish"}, {}, None, NOW)
    with pytest.raises(InputError, match="--begin = 'yesterdayish': is no time; write it as"):
        job.parameters(NOW)
