"""The study of Downey 1997: heads of queues by hand, and a small run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from foretime_estimators.distributions.lifetimes import Lifetimes
from foretime_estimators.jobs.jobs import JobRequest
from foretime_sim.models.lublin2003 import generate
from foretime_sim.models.speedup import Speedup
from foretime_sim.self_tuning.malleable import MalleableJobs
from foretime_sim.workloads.job_log import log_of_workload
from foretime_sim.workloads.workload import Workload
from foretime_studies.downey1997 import clusters
from foretime_studies.downey1997 import study as downey
from foretime_studies.downey1997.command import report
from foretime_studies.downey1997.greedy import greedy_choices, useful_sizes
from foretime_studies.downey1997.heads import correlation, heads_of, predict
from foretime_studies.downey1997.logs import studied_log
from foretime_studies.frame.tables import StudyTable


def log_of(jobs: list[tuple[int, int, int]], processors: int) -> Workload:
    """Make a workload of submissions, sizes and runtimes."""
    submit, size, runtime = (np.array(column, dtype=np.int64) for column in zip(*jobs, strict=True))
    number = np.arange(1, len(jobs) + 1)
    return Workload("made", processors, None, number, submit, size, runtime, runtime)


def test_a_head_waits_from_when_it_comes_to_the_head() -> None:
    """Ten processors: 6 until 1,000 and 3 until 400; 8 wait from 10 to 1,000, 2 start with them.

    The next 4 are submitted at 20 but come to the head at 1,000, and wait there until 1,300.
    """
    log = log_of([(0, 6, 1_000), (0, 3, 400), (10, 8, 300), (15, 2, 5_000), (20, 4, 50)], 10)
    heads = heads_of(log)
    assert heads.start_time.tolist() == [0, 0, 1_000, 1_000, 1_300]
    assert [moment.job for moment in heads.moments] == [2, 4]
    assert [moment.time for moment in heads.moments] == [10, 1_000]
    assert heads.needed.tolist() == [7, 4]
    assert heads.wait_s.tolist() == [990, 300]
    assert [moment.running.tolist() for moment in heads.moments] == [[0, 1], [2, 3]]
    assert heads.benefactors().tolist() == [0, 1]
    model = Lifetimes(np.log([10.0, 10_000.0]), np.array([0.0, 1.0]))
    told = predict(heads, lambda job, time: model)
    # A has no answer at first; the median life of the 8, which start then, is sqrt(10 * 10,000).
    assert np.isnan(told.by_a).tolist() == [True, False]
    assert told.by_a[1] == pytest.approx(10**2.5, rel=1e-3)
    assert told.combined.tolist() == [told.by_b[0], told.by_a[1]]
    assert told.overdue == 0


def test_the_correlation_leaves_out_what_has_no_answer() -> None:
    told, actual = np.array([1.0, np.nan, 2.0, 8.0]), np.array([10, 3, 100, 10_000])
    assert correlation(told, actual, log=True) == pytest.approx(1)
    raw = np.corrcoef([1, 2, 8], [10, 100, 10_000])[0, 1]
    assert correlation(told, actual) == pytest.approx(raw)
    assert np.isnan(correlation(told[:3], actual[:3]))
    assert np.isnan(correlation(np.ones(4), actual))


def test_the_past_only_is_learned() -> None:
    """What ends at a moment is known then, what ends later is not."""
    log = log_of([(0, 1, 100 + job) for job in range(120)], 1_000)
    heads = heads_of(log)
    learned = downey._learned(heads, [])
    assert learned(0, 148) is None
    first = learned(0, 149)
    assert first is not None
    last = learned(0, 500)
    assert last is not None
    assert last.t_max > first.t_max


def test_only_sizes_that_shorten_a_job_are_useful() -> None:
    table = StudyTable.of("greedy", "Greedy", greedy_choices(60, seed=3))
    rows = pd.DataFrame(table.rows, columns=[column.title for column in table.columns])
    assert set(rows["load"]) == {0.3, 0.5, 0.7}
    assert (rows["median turnaround, h"] > 0).all()
    assert rows["mean size"].between(1, 128).all()
    assert (rows["busy"] > 0).all()
    jobs = MalleableJobs(np.array([0]), np.array([1_000.0]), (Speedup(6, 0),))
    assert useful_sizes(jobs, 0).tolist() == [1, 2, 4, 8]


def test_jobs_choose_among_clusters_by_hand() -> None:
    """Both clusters have 4 processors. The first job has its own for 100 s; two others of its log
    come meanwhile, and run 50 s and 20 s."""
    logs = [log_of([(0, 1, 1)], 4)] * 2
    arrivals = [
        clusters.Arrival(JobRequest(name, None, None, 4, 200, submit), 0, runtime)
        for name, submit, runtime in (("a", 0, 100), ("b", 10, 50), ("c", 20, 20))
    ]
    at_home = clusters.run("home", lambda _, fitting: fitting[0], arrivals, logs)
    wait_h, turnaround_h = (90 + 130) / 3 / 3_600, (100 + 140 + 150) / 3 / 3_600
    assert at_home[:3] == ("home", 3, 0)
    assert at_home[3:] == pytest.approx((wait_h, 90 / 60, turnaround_h))
    # b finds the other cluster idle. Of a's request less is left, so c waits for a until 100.
    least = clusters.run("l", lambda _, f: min(f, key=clusters.Cluster.load_s), arrivals, logs)
    assert least[2:4] == pytest.approx((1 / 3, 80 / 3 / 3_600))
    # Of nothing known, the longer a job runs the longer it will: c waits for b until 60.
    told = clusters.run("p", clusters.LeastTurnaround(), arrivals, logs)
    assert told[2:4] == pytest.approx((2 / 3, 40 / 3 / 3_600))


def test_predictions_tell_short_jobs_from_long_requests() -> None:
    """Who asks for much and takes a minute is known after 60 jobs; load goes by what is asked."""
    logs = [log_of([(0, 1, 1)], 4)] * 2
    arrivals = [
        clusters.Arrival(
            JobRequest(str(number), None, None, 4, 40_000, number * 1_000), 0, 60 + number % 7
        )
        for number in range(60)
    ]
    arrivals += [
        clusters.Arrival(JobRequest("brief", None, None, 4, 40_000, 100_000), 0, 60),
        clusters.Arrival(JobRequest("sure", None, None, 4, 600, 100_001), 1, 600),
        clusters.Arrival(JobRequest("asks", None, None, 4, 600, 100_002), 1, 600),
    ]
    chosen: dict[str, int] = {}

    def noting(rule: clusters.Rule) -> clusters.Rule:
        def choose(
            arrival: clusters.Arrival, fitting: Sequence[clusters.Cluster]
        ) -> clusters.Cluster:
            cluster = rule(arrival, fitting)
            chosen[arrival.request.job_id] = int(cluster.name)
            return cluster

        return choose

    predicted = clusters.LeastTurnaround()
    clusters.run("p", noting(predicted), arrivals, logs, predicted.forecaster.finished)
    assert chosen["asks"] == chosen["brief"] != chosen["sure"]
    clusters.run("l", noting(lambda _, f: min(f, key=clusters.Cluster.load_s)), arrivals, logs)
    assert chosen["asks"] == chosen["sure"] != chosen["brief"]


def test_a_week_of_each_log_begins_together() -> None:
    log = log_of([(day * 86_400, 2, 100) for day in range(30)], 4)
    arrivals = clusters.arrivals_of([log, log.head(10)])
    assert len(arrivals) == 7 + 5
    assert [arrival.request.submit_time // 86_400 for arrival in arrivals[:4]] == [0, 0, 1, 1]
    assert len({arrival.request.job_id for arrival in arrivals}) == 12
    assert clusters.side_by_side([log], 1) == []


@pytest.fixture(scope="module")
def small() -> downey.Downey1997:
    made = generate(600, processors=64, seed=4)
    logs = [studied_log(log_of_workload(part), part.name) for part in (made, made.head(300))]
    steps: list[int] = []
    found = downey.study(logs, steps.append, asked=10, malleable_jobs=30, seed=1)
    assert steps == list(range(1, downey.STEPS_PER_LOG * 2 + downey.LAST_STEPS + 1))
    return found


def test_a_small_run(small: downey.Downey1997, tmp_path: Path) -> None:
    written = report(small)
    assert set(written.figures) == {f"figure{number}" for number in range(1, 8)}
    written.write(tmp_path)
    keys = {table.key for table in written.tables}
    assert {"table1-4", "table2", "table3", "table5", "correlations", "obsolete"} <= keys
    assert {path.stem for path in tmp_path.iterdir()} == {
        "report",
        "results",
        *keys,
        *written.figures,
    }
    for found in small.logs:
        answered = ~np.isnan(found.predicted.by_b)
        assert answered.all()
        assert (found.predicted.by_b >= 0).all()
