"""``foretime study streit2002-beyond``, and its page is what it wrote."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from foretime_sim.logs.swf import write_swf
from foretime_sim.models.lublin2003 import generate
from foretime_sim.workloads.job_log import log_of_workload
from foretime_studies.streit2002.sets import KTH, PC2, JobSource, LogSource, Pc2Source
from foretime_studies.streit2002.study import Case
from foretime_studies.streit2002_beyond.study import (
    FIRST_DRAW,
    VARIANTS,
    BeyondSettings,
    log_factors,
    study,
)
from foretime_studies.streit2002_beyond.tables import WITHIN, tables, verdict

Run = Callable[..., tuple[int, str, str]]


def test_two_sets_are_studied_and_kept(run: Run, tmp_path: Path) -> None:
    log = tmp_path / "KTH-SP2-1996-made.swf.gz"
    write_swf(log_of_workload(generate(120, processors=100, load=0.9)), log)
    output = tmp_path / "out"
    few = ("--jobs", "60", "--seeds", "1", "--more-seeds", "1")
    words = ("study", "streit2002-beyond", log, "-o", output, *few)
    code, out, err = run(*words)
    assert (code, err) == (0, "")
    assert "How often the target is met" in out
    document = json.loads((output / "results.json").read_text())
    assert document["command"].endswith("--seeds 1 --more-seeds 1 --jobs 60")
    assert {table["key"] for table in document["tables"]} == {
        *("targets", "verdict", "tails", "steps", "tuned", "more-draws", "logs"),
    }
    assert (output / "targets.svg").exists()
    kept = (output / "cells.jsonl").read_text()
    code, out, err = run(*words, "--json")
    assert (code, json.loads(out)) == (0, document)
    assert (output / "cells.jsonl").read_text() == kept


def test_settings_are_chosen_on_the_other_sets(tmp_path: Path) -> None:
    sources: dict[str, JobSource] = {
        "KTH": LogSource.of(KTH, generate(300, processors=100, load=0.9)),
        "PC2": Pc2Source(),
    }
    found = study(sources, tmp_path, BeyondSettings(seeds=3, few_seeds=1, more_seeds=1, jobs=80))
    for job_set, other in ((KTH, PC2), (PC2, KTH)):
        product = dict.fromkeys(VARIANTS, 1.0)
        for case, result in found.results.items():
            if case.job_set == other.name and case.draw > 100:
                product[case.scheduler] *= result.measures.artww_s
        assert found.chosen[job_set.name] == min(product, key=lambda name: product[name])
        for factor in job_set.factors:
            judged = verdict(found, job_set, factor)
            assert judged.low is not None
            assert judged.high is not None
            assert judged.low <= judged.ratio <= judged.high
            assert judged.met == (judged.ratio <= WITHIN)
            for draw in range(FIRST_DRAW, FIRST_DRAW + 3):
                case = Case(job_set.name, judged.best, factor, draw)
                assert case in found.results
    by_key = {table.key: table for table in tables(found)}
    assert len(by_key["targets"].rows) == len(KTH.factors) + len(PC2.factors)
    assert by_key["verdict"].rows[-1][:2] == ("all", len(by_key["targets"].rows))
    assert len(by_key["logs"].rows) == len(log_factors(KTH))

    more = by_key["more-draws"].rows
    assert [row[0] for row in more] == ["PC2"] * len(PC2.factors)
    for row, factor in zip(more, PC2.factors, strict=True):
        few, many = verdict(found, PC2, factor), verdict(found, PC2, factor, 4)
        assert few.low is not None
        assert few.high is not None
        assert row[1:5] == (factor, few.ratio - 1, few.low - 1, few.high - 1)
        ours, best = (
            [
                found.results[Case("PC2", name, factor, draw)]
                for draw in range(FIRST_DRAW, FIRST_DRAW + 4)
            ]
            for name in (found.chosen["PC2"], many.best)
        )
        sums = [sum(run.measures.artww_s for run in runs) for runs in (ours, best)]
        assert row[5] == pytest.approx(sums[0] / sums[1] - 1)
        assert row[-2:] == (many.best, many.name)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("no.swf",), "not a log of this study"),
        (("--seeds", "0"), "--seeds"),
        (("--jobs", "5"), "--jobs"),
    ],
)
def test_bad_input_is_refused(run: Run, tmp_path: Path, words: tuple[str, ...], says: str) -> None:
    code, out, err = run("study", "streit2002-beyond", *words, "-o", tmp_path / "out")
    assert (code, out) == (2, "")
    assert says in err
