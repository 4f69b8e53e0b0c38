"""A campaign's report: one HTML file that needs nothing else, and its pictures as PNG."""

from __future__ import annotations

import base64
import datetime
import io
import platform
import re
import statistics
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from pathlib import Path

from foretime_estimators.estimators.registry import ESTIMATORS
from foretime_estimators.jobs.errors import InputError
from matplotlib.figure import Figure

from foretime_sim.campaigns.cells import Plan, foretime_version
from foretime_sim.campaigns.plots import (
    plot_gains,
    plot_load,
    plot_matrix,
    plot_tail,
    written,
)
from foretime_sim.campaigns.results import Summary, policy_label, summaries
from foretime_sim.campaigns.runs import Record
from foretime_sim.files.whole_files import write_whole
from foretime_sim.scores.metrics import METRICS, Direction
from foretime_sim.scores.repeats import FEWEST_REPEATS

REPORT = "report.html"
PLOTS = "plots"
_DPI = 110
_ALWAYS = ("wait_mean_s", "wait_p99_9_s")
"""What the picture of the tail needs, whatever the report shows."""

_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 78rem; margin: 2rem auto; padding: 0 1rem;
  color: #222; }
h1, h2, h3 { line-height: 1.2; } h2 { margin-top: 2.5rem; border-bottom: 1px solid #ccc; }
table { border-collapse: collapse; font-size: 13px; margin: 1rem 0; }
th, td { padding: .25rem .7rem; border-bottom: 1px solid #e4e4e4; text-align: right;
  white-space: nowrap; }
th { vertical-align: bottom; } th:first-child, td:first-child { text-align: left; }
td.text { text-align: left; white-space: normal; }
tr.baseline td { background: #f3f3f3; }
td.best { font-weight: 600; background: #dff2df; } td.like { background: #eff8ef; }
.spread { color: #777; font-size: 12px; } .scroll { overflow-x: auto; }
.good { color: #17692b; } .bad { color: #a3261c; }
img { max-width: 100%; height: auto; } pre { background: #f6f6f6; padding: 1rem; overflow-x: auto; }
.failed { border-left: 4px solid #a3261c; padding-left: 1rem; }
"""


def write_report(plan: Plan, records: Mapping[str, Record], folder: Path) -> Path:
    """Write ``report.html``, and its pictures into ``plots``; the report's path.

    A campaign that is not finished is reported as far as it is.

    Raises
    ------
    InputError
        If the folder can't be written.
    """
    report = _Report(plan, records)
    path = folder / REPORT
    try:
        pictures = folder / PLOTS
        pictures.mkdir(parents=True, exist_ok=True)
        text = report.html()
        for name, image in report.pictures.items():
            write_whole(pictures / f"{name}.png", image)
        write_whole(path, text.encode())
    except OSError as error:
        raise InputError(f"{folder}: can't write the report: {error.strerror}") from error
    return path


class _Report:
    def __init__(self, plan: Plan, records: Mapping[str, Record]) -> None:
        self.plan, self.campaign = plan, plan.campaign
        self.records = {c.id: records[c.id] for c in plan.cells if c.id in records}
        self.done = [r for r in self.records.values() if r["status"] == "done"]
        self.failed = [r for r in self.records.values() if r["status"] == "failed"]
        self.metrics = self.campaign.report.metrics
        self.found = summaries(plan, records, tuple(dict.fromkeys((*self.metrics, *_ALWAYS))))
        self.baseline = policy_label(plan, plan.baseline)
        self.conditions = list(dict.fromkeys((s.log, s.interarrival_factor) for s in self.found))
        self.pictures: dict[str, bytes] = {}

    def html(self) -> str:
        body = "\n".join(self._parts())
        return (
            '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
            '<meta name="viewport" content="width=device-width">'
            f"<title>{escape(self.campaign.name)}</title><style>{_STYLE}</style></head>\n"
            f"<body>\n{body}\n</body></html>\n"
        )

    def _parts(self) -> Iterator[str]:
        yield f"<h1>{escape(self.campaign.name)}</h1>"
        if self.campaign.description:
            yield f"<p>{escape(self.campaign.description)}</p>"
        yield f"<p>{self._state()}</p>"
        yield from self._failures()
        if not self.done:
            return
        yield "<h2>In short</h2>"
        yield from self._findings()
        yield from self._never_ran()
        yield from self._how_to_read()
        yield from self._load()
        logs = list(dict.fromkeys(log for log, _ in self.conditions))
        for log in logs:
            yield f"<h2>{escape(log)}</h2>"
            yield self._workload(log)
            factors = [factor for name, factor in self.conditions if name == log]
            shown = 1.0 if 1.0 in factors else factors[0]
            yield from self._condition(log, shown)
            for factor in factors:
                if factor != shown:
                    yield f"<details><summary>Interarrival factor {factor:g}</summary>"
                    yield from self._table(log, factor)
                    yield "</details>"
        yield "<h2>What it cost</h2>"
        yield from self._cost()
        yield "<h2>What was declared</h2>"
        yield from self._declared()

    def _state(self) -> str:
        cells, missing = len(self.plan.cells), len(self.plan.cells) - len(self.records)
        told = f"{len(self.done):,} of {cells:,} cells done"
        if self.failed:
            told += f', <strong class="bad">{len(self.failed):,} failed</strong>'
        if missing:
            told += f", {missing:,} still to run (<code>foretime campaign run</code> goes on)"
        now = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M UTC")
        return f"{told}. Written {now} by Foretime {foretime_version()}."

    def _failures(self) -> Iterator[str]:
        if not self.failed:
            return
        yield '<div class="failed"><h2>Failed</h2>'
        by_error: dict[str, list[Record]] = {}
        for record in self.failed:
            by_error.setdefault(record["error"], []).append(record)
        for error, records in by_error.items():
            titles = [_title(record) for record in records]
            more = f" and {len(titles) - 5:,} more" if len(titles) > 5 else ""
            yield (
                f"<p><strong>{escape(error)}</strong><br>"
                f"{'<br>'.join(map(escape, titles[:5]))}{more}</p>"
            )
            if (trace := records[0]["traceback"]) is not None:
                yield f"<details><summary>traceback</summary><pre>{escape(trace)}</pre></details>"
        yield (
            "<p>The others went on. <code>foretime campaign run --retry-failed</code> "
            "tries these again.</p></div>"
        )

    def _never_ran(self) -> Iterator[str]:
        """Say which sites never let some jobs run: those are scored in no cell of their log."""
        said = dict.fromkeys(
            f"{_title(record)}: {record['run']['never_ran_jobs']:,} ({_reasons(record)})"
            for record in self.done
            if record["run"].get("never_ran_jobs")
        )
        if said:
            yield (
                "<p>Jobs that one of the sites never let run are scored under none of them.</p><ul>"
                + "".join(f"<li>{escape(each)}</li>" for each in said)
                + "</ul>"
            )

    def _findings(self) -> Iterator[str]:
        """Say for each log and load which policy is best, by how much, and at what price."""
        metric = self.metrics[0]
        title = escape(METRICS[metric].title)
        yield (
            '<div class="scroll"><table><thead><tr><th>log</th><th>best</th>'
            f"<th>{title}</th><th>gain</th><th>baseline</th><th>as good<br>by the seeds</th>"
            "<th>wait, p99.9</th><th>baseline</th></tr></thead><tbody>"
        )
        for log, factor in self.conditions:
            own = self._own(log, factor, metric)
            tail = {s.label: s for s in self._own(log, factor, "wait_p99_9_s")}
            base = next((s for s in own if s.label == self.baseline), None)
            for summary in self._best(own):
                oracle = ", an oracle" if is_oracle(summary) else ""
                gain = "baseline" if summary is base else _gain(summary)
                alike = sum(s.like_best for s in own) - 1 if summary.like_best else None
                cells = (
                    _mean(summary),
                    gain,
                    "–" if base is None else _mean(base),
                    "–" if alike is None else f"{alike} more",
                    _mean(tail[summary.label]),
                    "–" if base is None else _mean(tail[base.label]),
                )
                yield (
                    f"<tr><td>{escape(self._name(log, factor))}</td>"
                    f'<td class="text">{escape(summary.label)}{oracle}</td>'
                    f"{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>"
                )
        yield "</tbody></table></div>"

    def _best(self, own: Sequence[Summary]) -> Iterator[Summary]:
        """Give the best policy; if that is an oracle, the best that a site could run, too."""
        known = [s for s in own if s.mean is not None]
        if not known or METRICS[known[0].metric].better is Direction.NEITHER:
            return
        larger = METRICS[known[0].metric].better is Direction.LARGER
        choose = max if larger else min
        best = choose(known, key=lambda s: s.mean or 0.0)
        yield best
        possible = [s for s in known if not is_oracle(s)]
        if is_oracle(best) and possible:
            yield choose(possible, key=lambda s: s.mean or 0.0)

    def _how_to_read(self) -> Iterator[str]:
        seeds = sorted({cell.axes["seed"] for cell in self.plan.cells})
        level = f"{100 * self.campaign.report.level:g}%"
        base = f"<strong>{escape(self.baseline)}</strong>"
        jitter = self.campaign.scoring.jitter_s
        if len(seeds) >= FEWEST_REPEATS:
            yield (
                f"<p>Values are means over {len(seeds)} seeds. A seed submits every job up to "
                f"{jitter} s earlier or later and shuffles equal submissions, the same for all "
                "policies; that alone changes what a backfilling scheduler does. ± is half of "
                f"Student's {level} interval. It tells how far the schedule's chaos moves a mean, "
                "not what another month or another machine would give. Gains are against the "
                f"baseline, {base}, seed by seed: positive is better. The best mean of a column is "
                "marked; paler are those whose difference to it, seed by seed, has an interval "
                "that holds 0. With many policies some stand out by luck.</p>"
            )
        else:
            yield (
                f"<p>Gains are against the baseline, {base}: positive is better. With fewer than "
                f"{FEWEST_REPEATS} seeds there are no intervals: small differences may be the "
                "schedule's chaos (seeds = 10 in [grid] would show it).</p>"
            )

    def _load(self) -> Iterator[str]:
        figures = [(metric, plot_load(self.plan, self.found, metric)) for metric in self.metrics]
        if all(figure is None for _, figure in figures):
            return
        yield "<h2>Against the load</h2>"
        yield (
            "<p>Times between submissions are multiplied by the factor (Streit 2002), so the load "
            "grows to the right.</p>"
        )
        for metric, figure in figures:
            if figure is not None:
                yield self._picture(f"load-{metric}", figure, f"{METRICS[metric].title} and load")

    def _workload(self, log: str) -> str:
        record = next(r for r in self.done if r["axes"]["log"] == log)
        run = record["run"]
        load = run["offered_load"]
        told = [
            f"{run['simulated_jobs']:,} jobs simulated, {record['metrics']['jobs']:,} scored",
            f"{run['machine_processors']:,} processors",
        ]
        if load is not None and record["axes"]["interarrival_factor"] == 1:
            told.append(f"offered load {100 * load:.1f}%")
        notes = "".join(f"<br>{escape(note)}" for note in run["workload_notes"])
        return f"<p>{'; '.join(told)}.{notes}</p>"

    def _condition(self, log: str, factor: float) -> Iterator[str]:
        """Show one load in full; of the others there are tables, and the lines against the load."""
        if len({f for _, f in self.conditions}) > 1:
            yield f"<h3>Interarrival factor {factor:g}</h3>"
        name = _file_name(self._name(log, factor))
        figure = plot_matrix(self.plan, self.found, log, factor)
        if figure is not None:
            yield self._picture(f"matrix-{name}", figure, f"Policies on {log}")
        yield from self._table(log, factor)
        if (figure := plot_gains(self.plan, self.found, log, factor)) is not None:
            yield self._picture(f"gains-{name}", figure, f"Against the baseline on {log}")
        if (figure := plot_tail(self.plan, self.found, log, factor)) is not None:
            yield (
                "<p>What the mean does not show: how long the unluckiest thousandth of the jobs "
                "wait. Policies whose mean wait is more than four times the best are left out.</p>"
            )
            yield self._picture(f"tail-{name}", figure, f"Mean and tail of the wait on {log}")

    def _table(self, log: str, factor: float) -> Iterator[str]:
        columns = {metric: self._own(log, factor, metric) for metric in self.metrics}
        head = "".join(f"<th>{escape(METRICS[m].title)}</th><th>gain</th>" for m in self.metrics)
        yield f'<div class="scroll"><table><thead><tr><th>policy</th>{head}<th>seeds</th></tr>'
        yield "</thead><tbody>"
        first = columns[self.metrics[0]]
        larger = METRICS[self.metrics[0]].better is Direction.LARGER
        places = sorted(
            range(len(first)),
            key=lambda i: (first[i].mean is None, (first[i].mean or 0.0) * (-1 if larger else 1)),
        )
        for place in places:
            label = first[place].label
            is_base = label == self.baseline
            cells = ""
            for own in columns.values():
                summary = own[place]
                mark = ' class="best"' if summary.best else ""
                if not mark and summary.like_best:
                    mark = ' class="like"'
                gain = "baseline" if is_base else _gain(summary)
                cells += f"<td{mark}>{_mean(summary)}</td><td>{gain}</td>"
            row = ' class="baseline"' if is_base else ""
            yield f"<tr{row}><td>{escape(label)}</td>{cells}<td>{first[place].seeds}</td></tr>"
        yield "</tbody></table></div>"

    def _cost(self) -> Iterator[str]:
        total = sum(r["wall_clock_s"] or 0.0 for r in self.records.values())
        simulated = sum(r["run"]["simulation_s"] for r in self.done)
        jobs = sum(r["run"]["simulated_jobs"] for r in self.done)
        hosts = sorted({r["host"] for r in self.records.values()})
        yield (
            f"<p>{written(total, 's')} of workers' time, {written(simulated, 's')} of it "
            f"simulation, for {jobs:,} jobs, on {len(hosts)} "
            f"host{'' if len(hosts) == 1 else 's'}.</p>"
        )
        speeds: dict[tuple[str, str, str], list[tuple[float, float, int]]] = {}
        for record in self.done:
            axes, run = record["axes"], record["run"]
            speeds.setdefault((axes["log"], axes["backfill"], axes["estimator"]), []).append(
                (
                    run["simulated_jobs"] / max(run["simulation_s"], 1e-9),
                    run["simulation_s"],
                    run["deepest_queue_jobs"],
                )
            )
        yield (
            '<div class="scroll"><table><thead><tr><th>log</th><th>backfilling</th>'
            "<th>estimator</th><th>cells</th><th>jobs/s, median</th><th>longest simulation</th>"
            "<th>deepest queue</th></tr></thead><tbody>"
        )
        for (log, backfill, estimator), cells in speeds.items():
            yield (
                f'<tr><td>{escape(log)}</td><td class="text">{escape(backfill)}</td>'
                f'<td class="text">{escape(estimator)}</td><td>{len(cells):,}</td>'
                f"<td>{statistics.median(c[0] for c in cells):,.0f}</td>"
                f"<td>{written(max(c[1] for c in cells), 's')}</td>"
                f"<td>{max(c[2] for c in cells):,} jobs</td></tr>"
            )
        yield "</tbody></table></div>"

    def _declared(self) -> Iterator[str]:
        notes = [escape(note) for note in self.plan.notes]
        versions = sorted({r["foretime"] for r in self.records.values()})
        notes.append(
            f"Run with Foretime {', '.join(versions)}; report by Python "
            f"{platform.python_version()} on {escape(platform.system())}"
        )
        yield f"<ul>{''.join(f'<li>{note}</li>' for note in notes)}</ul>"
        try:
            text = self.campaign.path.read_text(encoding="utf-8")
        except OSError:
            return
        yield (
            f"<details><summary>{escape(self.campaign.path.name)}</summary>"
            f"<pre>{escape(text)}</pre></details>"
        )

    def _own(self, log: str, factor: float, metric: str) -> list[Summary]:
        return [
            s
            for s in self.found
            if s.log == log and s.interarrival_factor == factor and s.metric == metric
        ]

    def _name(self, log: str, factor: float) -> str:
        several = len({f for _, f in self.conditions}) > 1
        return f"{log} at factor {factor:g}" if several else log

    def _picture(self, name: str, figure: Figure, alternative: str) -> str:
        buffer = io.BytesIO()
        figure.savefig(buffer, dpi=_DPI, format="png")
        self.pictures[name] = buffer.getvalue()
        data = base64.b64encode(buffer.getvalue()).decode()
        return f'<p><img alt="{escape(alternative)}" src="data:image/png;base64,{data}"></p>'


def _mean(summary: Summary) -> str:
    unit = METRICS[summary.metric].unit
    text = written(summary.mean, unit)
    if summary.interval is None or summary.mean is None:
        return text
    half = (summary.interval.high - summary.interval.low) / 2
    return f'{text} <span class="spread">± {_spread(half, summary.mean)}</span>'


def _spread(half: float, mean: float) -> str:
    return f"{_digits(100 * half / abs(mean))}%" if mean else _digits(half)


def _digits(value: float) -> str:
    """Write the size of an uncertainty: two digits, or what stands before the point."""
    return f"{value:,.0f}" if value >= 10 else f"{value:.2g}"


def is_oracle(summary: Summary) -> bool:
    """Whether a policy plans with the true runtimes, which no scheduler knows."""
    name = str(summary.policy["estimator"]).partition(":")[0]
    return any(entry.oracle for entry in ESTIMATORS if entry.name == name)


def _gain(summary: Summary) -> str:
    if summary.gain is None:
        return "–"
    text = f"{100 * summary.gain:+.1f}%"
    interval = summary.gain_interval
    if interval is None:
        return text
    mark = "good" if interval.low > 0 else "bad" if interval.high < 0 else ""
    if mark:
        text = f'<span class="{mark}">{text}</span>'
    return f'{text} <span class="spread">± {_digits(50 * (interval.high - interval.low))}</span>'


def _reasons(record: Record) -> str:
    """Say why jobs of a cell never ran."""
    return "; ".join(f"{jobs:,} {why}" for why, jobs in record["run"]["never_ran"].items())


def _title(record: Record) -> str:
    return ", ".join(f"{a} {v}" for a, v in record["axes"].items() if v is not None)


def _file_name(text: str) -> str:
    return re.sub(r"[^\w.-]+", "-", text)
