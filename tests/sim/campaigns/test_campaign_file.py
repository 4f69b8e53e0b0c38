"""A campaign file that is wrong is refused with file, line, table, key, value and what is valid."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from foretime_estimators.accuracy.accuracy_settings import AccuracySettings
from foretime_estimators.jobs.errors import InputError
from foretime_sim.campaigns.campaign import Grid
from foretime_sim.campaigns.file import parse_campaign, read_campaign
from hypothesis import given
from hypothesis import strategies as st

LOG = '[[logs]]\ngenerate = "lublin2003"\n'

WRONG = {
    "not TOML": ("[grid]\norder = sjf", ["c.toml:2: not TOML", "(column 9)"]),
    "no logs": ("", ["c.toml: it declares no logs", "[[logs]]"]),
    "unknown table": (LOG + "[gird]\norder = 'sjf'", ["c.toml:3: gird", "did you mean 'grid'?"]),
    "unknown key": (
        LOG + "jobz = 3",
        ["c.toml:3: [[logs]] number 1 jobz", "did you mean 'jobs'?", "processors"],
    ),
    "unknown axis": (
        LOG + "[grid]\nbackfil = 'easy'",
        ["c.toml:4: [grid] backfil", "did you mean 'backfill'?", "estimator"],
    ),
    "unknown order": (
        LOG + "[grid]\nlearn = true\norder = ['sjf', 'fcsf']",
        ["c.toml:5: [grid] order = 'fcsf'", "did you mean 'fcfs'?", "wfp"],
    ),
    "a folder for a log": (
        "[[logs]]\npath = '.'",
        ["c.toml:2: [[logs]] number 1 path: ", "is a folder: name a file"],
    ),
    "order for live schedulers": (
        LOG + "[grid]\norder = 'priority'",
        ["c.toml:4: [grid] order = 'priority'", "no priorities"],
    ),
    "no such module": (
        LOG + "[grid]\norder = 'nowhere_at_all:order'",
        ["c.toml:4: [grid] order", "there is no module 'nowhere_at_all'"],
    ),
    "unknown estimator": (
        LOG + "[grid]\nestimator = 'combned'",
        ["c.toml:4: [grid] estimator = 'combned'", "did you mean 'combined'?", "last-two"],
    ),
    "estimator without its number": (
        LOG + "[grid]\nestimator = 'blend'",
        ["[grid] estimator = 'blend'", "blend:0.5"],
    ),
    "twice the same": (LOG + "[grid]\norder = ['sjf', 'SJF']", ["'sjf' stands in the list twice"]),
    "empty list": (LOG + "[grid]\norder = []", ["c.toml:4: [grid] order", "the list is empty"]),
    "negative guard": (LOG + "[grid]\nguard_s = -1", ["[grid] guard_s = -1", '"off"']),
    "guard is true": (LOG + "[grid]\nguard_s = true", ["[grid] guard_s = True", '"off"']),
    "negative seeds": (LOG + "[grid]\nseeds = -1", ["[grid] seeds = -1", "log as it is"]),
    "roles": (LOG + "[grid]\nroles = '12'", ["[grid] roles = '12'", "three digits"]),
    "no growth": (
        LOG + "[grid]\ninterarrival_factor = [1, 0]",
        ["c.toml:4: [grid] interarrival_factor = 0", "give more than 0"],
    ),
    "not a number": (LOG + "load = 'high'", ["[[logs]] number 1 load = 'high'", "give a number"]),
    "not a table": ("grid = 3\n" + LOG, ["c.toml:1: grid", "write it as a table, [grid]"]),
    "not tables": ("[logs]\npath = 'x'", ["c.toml:1: logs", "[[logs]]"]),
    "second log": (
        LOG + "name = 'a'\n[[logs]]\npath = 'nowhere.swf'",
        ["c.toml:5: [[logs]] number 2 path", "there is no file", "nowhere.swf"],
    ),
    "no name of a file": (
        f"[[logs]]\npath = '{'a' * 300}'",
        ["c.toml:2: [[logs]] number 1 path", "can't be looked at: File name too long"],
    ),
    "variable not set": (
        "[[logs]]\npath = '${FORETIME_NOT_SET}/a.swf'",
        ["[[logs]] number 1 path", "FORETIME_NOT_SET is not set"],
    ),
    "path and generate": (LOG + "path = 'x'", ["[[logs]] number 1", "not both"]),
    "neither": ("[[logs]]\nname = 'x'", ["c.toml:1: [[logs]] number 1", "give path, or generate"]),
    "a log's key": (
        LOG + "lenient = true",
        ["c.toml:3: [[logs]] number 1 lenient", "this is for logs"],
    ),
    "same name": (LOG + LOG, ["c.toml:3: [[logs]] number 2", "already", "name"]),
    "both warm-ups": (
        LOG + "[scoring]\nwarm_up_s = 1\nwarm_up_share = 0.1",
        ["c.toml:5: [scoring] warm_up_share", "not both"],
    ),
    "whole log is warm-up": (LOG + "[scoring]\nwarm_up_share = 1", ["[scoring] warm_up_share = 1"]),
    "unknown metric": (
        LOG + "[report]\nmetrics = ['wait_means_s']",
        ["c.toml:4: [report] metrics = 'wait_means_s'", "wait_mean_s"],
    ),
    "unknown axis of the baseline": (
        LOG + "[report]\nbaseline = {ordr = 'sjf'}",
        ["c.toml:4: [report] baseline.ordr", "did you mean 'order'?"],
    ),
    "baseline not in the grid": (
        LOG + "[report]\nbaseline = {order = 'sjf'}",
        ["c.toml:4: [report] baseline.order", "one of [grid]'s order: 'fcfs'"],
    ),
    "rule with an unknown axis": (
        LOG + "[[exclude]]\norder = 'fcfs'\n[[exclude]]\nbackfil = 'easy'",
        ["c.toml:6: [[exclude]] number 2 backfil", "did you mean 'backfill'?", "log"],
    ),
    "rule with an unknown value": (
        LOG + "[[include]]\norder = 'sfj'",
        ["c.toml:4: [[include]] number 1 order = 'sfj'", "did you mean 'sjf'?"],
    ),
    "rule with an unknown log": (
        LOG + "name = 'kth'\n[[exclude]]\nlog = 'kht'",
        ["c.toml:5: [[exclude]] number 1 log", "did you mean 'kth'?"],
    ),
    "empty rule": (LOG + "[[exclude]]\n", ["c.toml:3: [[exclude]] number 1", "empty"]),
    "unknown accuracy rule": (
        LOG + "[grid]\naccuracy_rule = 'tang2011'",
        ["c.toml:4: [grid] accuracy_rule", "did you mean 'tang2010'?", "production"],
    ),
    "unknown key of a rule": (
        LOG + "[accuracy.mine]\npercentil = 1",
        ["c.toml:4: [accuracy.mine] percentil", "did you mean 'percentile'?"],
    ),
    "value of a rule": (
        LOG + "[accuracy.mine]\npercentile = 2.0",
        ["c.toml:3: [accuracy.mine]", "percentile = 2.0", "at most 1"],
    ),
    "type of a rule": (
        LOG + "[accuracy.mine]\nthreshold = 'few'",
        ["[accuracy.mine]", "threshold = 'few'", "50"],
    ),
    "built-in rule": (LOG + "[accuracy.production]\n", ["[accuracy.production]", "built in"]),
    "based on nothing": (
        LOG + "[accuracy.mine]\nbased_on = 'x'",
        ["[accuracy.mine]", "based_on = 'x'", "production or tang2010"],
    ),
    "policy that is not there": (
        LOG + "[grid]\npolicy = 'plannnig'",
        ["c.toml:4: [grid] policy = 'plannnig'", "did you mean 'planning'?"],
    ),
    "several policies": (
        LOG + "[[include]]\npolicy = ['easy', 'planning']",
        ["c.toml:4: [[include]] number 1 policy = ['easy', 'planning']", "the name of one policy"],
    ),
    "jobqueue": (LOG + "[jobqueue]\ncores = 0", ["c.toml:4: [jobqueue] cores = 0", "1"]),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_is_wrong_is_said_with_its_place(case: str, tmp_path: Path) -> None:
    text, told = WRONG[case]
    with pytest.raises(InputError) as error:
        parse_campaign(text, tmp_path / "c.toml")
    assert str(error.value).startswith(str(tmp_path / "c.toml"))
    for words in told:
        assert words in str(error.value)


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"none.toml: can't read the campaign: No such file"):
        read_campaign(tmp_path / "none.toml")


@given(st.sampled_from(list(Grid.model_fields)), st.data())
def test_nothing_in_the_grid_gives_a_traceback(axis: str, data: st.DataObject) -> None:
    values = st.one_of(
        st.integers(-3, 3), st.floats(-1, 1), st.booleans(), st.sampled_from(["x", "", "a:b", "0"])
    )
    value = data.draw(st.one_of(values, st.lists(values, max_size=3)))
    told = ""
    try:
        campaign = parse_campaign(f"{LOG}[grid]\n{axis} = {json.dumps(value)}", Path("c.toml"))
    except InputError as error:
        told = str(error)
    else:
        assert campaign.axes["seed" if axis == "seeds" else axis]
    assert not told or f"c.toml:4: [grid] {axis}" in told


def test_scalars_lists_seeds_and_numbers_are_read(tmp_path: Path) -> None:
    text = f"""{LOG}
[grid]
order = "SJF"
backfill = ["none", "easy"]
interarrival_factor = [1, 0.5]
guard_s = ["off", 3600]
estimator = "blend:0.50"
seeds = 3
"""
    axes = parse_campaign(text, tmp_path / "c.toml").axes
    assert axes["order"] == ("sjf",)
    assert axes["backfill"] == ("none", "easy")
    assert axes["interarrival_factor"] == (1.0, 0.5)
    assert axes["guard_s"] == ("off", 3600)
    assert axes["estimator"] == ("blend:0.5",)
    assert axes["seed"] == (1, 2, 3)
    assert next(iter(axes)) == "log"
    for written, seeds in (("0", (0,)), ("1", (1,)), ("[0, 7]", (0, 7))):
        text = f"{LOG}[grid]\nseeds = {written}"
        assert parse_campaign(text, tmp_path / "c.toml").grid.seeds == seeds


def test_paths_are_the_files_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    logs, elsewhere = tmp_path / "logs", tmp_path / "elsewhere"
    for folder in (logs, elsewhere):
        folder.mkdir()
    (logs / "site.swf.gz").write_bytes(b"")
    monkeypatch.setenv("LOGS_HERE", str(logs))
    monkeypatch.chdir(elsewhere)
    for path in ("../logs/site.swf.gz", "${LOGS_HERE}/site.swf.gz"):
        text = f'[[logs]]\npath = "{path}"'
        campaign = parse_campaign(text, Path("../elsewhere/mine.toml"))
        (name, source), *others = campaign.logs.items()
        assert not others
        assert name == "site"
        assert source.path is not None
        assert Path(source.path).samefile(logs / "site.swf.gz")
        assert campaign.output.resolve() == elsewhere / "mine-results"
        assert campaign.name == "mine"


def test_an_accuracy_rule_changes_what_it_names(tmp_path: Path) -> None:
    text = f"""{LOG}
[grid]
accuracy_rule = ["production", "soft"]
[accuracy.soft]
percentile = 0.5
class_bounds_s = [3600]
[accuracy.aged]
based_on = "tang2010"
half_life_s = 864000
[accuracy.short]
window_s = 86400
"""
    rules = parse_campaign(text, tmp_path / "c.toml").accuracy
    production, soft = AccuracySettings.production(), rules["soft"]
    assert (soft.percentile, soft.class_bounds_s) == (0.5, (3600,))
    assert (soft.window_s, soft.threshold) == (production.window_s, production.threshold)
    assert (rules["aged"].half_life_s, rules["aged"].window_s) == (864_000, None)
    assert (rules["short"].half_life_s, rules["short"].window_s) == (None, 86_400)


def test_a_policy_file_stands_for_its_keys(tmp_path: Path) -> None:
    (tmp_path / "site.toml").write_text('order = "wfp"\nbackfill = "easy-sjbf"\nageing_s = 60\n')
    text = f"""{LOG}
[grid]
policy = "site.toml"
order = ["fcfs", "sjf"]
[[include]]
policy = "planning"
[[exclude]]
policy = "site.toml"
order = "sjf"
[report]
baseline = {{policy = "site.toml", order = "sjf"}}
"""
    campaign = parse_campaign(text, tmp_path / "c.toml")
    assert campaign.axes["order"] == ("fcfs", "sjf")  # what the table names itself goes before
    assert campaign.axes["backfill"] == ("easy-sjbf",)
    assert campaign.axes["ageing_s"] == (60,)
    (included,), (excluded,) = campaign.include, campaign.exclude
    assert included.values == {
        "order": ("fcfs",),
        "backfill": ("planning",),
        "correction": ("slurm",),
    }
    assert excluded.values["order"] == ("sjf",)
    assert campaign.report.baseline == {
        "order": "sjf",
        "backfill": "easy-sjbf",
        "ageing_s": 60,
    }


def test_a_policy_with_what_campaigns_have_not_is_refused(tmp_path: Path) -> None:
    (tmp_path / "site.toml").write_text("scheduling_interval_s = 10\n")
    with pytest.raises(InputError, match=r"c.toml:4: .* campaigns have no scheduling_interval_s"):
        parse_campaign(f"{LOG}[grid]\npolicy = 'site.toml'", tmp_path / "c.toml")
