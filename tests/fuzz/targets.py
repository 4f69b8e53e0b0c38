"""What reads text from outside, and how its seeds come about.

A target may refuse what it is given with an error of ours; anything else that it raises is a
finding. CONTRIBUTING.md says how to look for some.
"""

from __future__ import annotations

import atexit
import json
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC
from functools import cache, partial
from pathlib import Path
from typing import Any

from foretime_estimators.jobs.errors import ForetimeError
from foretime_sidecar.clients.pbs import json as pbs_json
from foretime_sidecar.clients.pbs.qmgr_text import parse_qmgr
from foretime_sidecar.clients.pbs.resource_group import parse_usage
from foretime_sidecar.clients.pbs.select import parse_asked
from foretime_sidecar.clients.slurm.control_texts import (
    parse_configuration,
    parse_load,
    parse_reservations,
    parse_site_factors,
)
from foretime_sidecar.clients.slurm.job_note import read_note
from foretime_sidecar.clients.slurm.json import decoded, parse_finished
from foretime_sidecar.clients.slurm.queue_json import parse_queue
from foretime_sidecar.clients.slurm.site import expand_nodes, parse_partitions
from foretime_sidecar.job_options.batch_script import read_script
from foretime_sidecar.job_options.job_request import asked_job
from foretime_sidecar.settings.settings import Settings
from foretime_sidecar.settings.settings_file import parse_settings, to_toml
from foretime_sidecar.site_import.pbs_site import import_pbs_site
from foretime_sidecar.site_import.saved_output import kind_of, read_folder
from foretime_sidecar.site_import.site_output import SLURM, SiteOutput
from foretime_sidecar.site_import.slurm_site import import_site
from foretime_sidecar.table.table import parse_table, table_bytes
from foretime_sim.campaigns.file import parse_campaign
from foretime_sim.logs.cobalt_log import parse_cobalt_log
from foretime_sim.logs.csv_log import parse_csv_log
from foretime_sim.logs.pbs_accounting import parse_pbs_accounting
from foretime_sim.logs.sacct import parse_sacct
from foretime_sim.logs.swf import parse_swf
from foretime_sim.machines.machine_file import parse_machine
from foretime_sim.sites.site_file import parse_site

from tests.support.hooks.hook_sites import MAKERS, ROWS, Job, Site, decisions, table_text

REPOSITORY = Path(__file__).resolve().parents[2]
ASSETS = REPOSITORY / "tests/assets"
_MOST_SEED_BYTES = 6_000
_NOW = 1_800_000_000


@dataclass(frozen=True)
class Target:
    """Something that reads text from outside.

    Attributes
    ----------
    read
        Reads what is given.
    seeds
        Gives inputs that are taken, to begin with.
    is_json
        Whether inputs are JSON, and are changed as that.
    """

    read: Callable[[bytes], object]
    seeds: Callable[[], Iterator[bytes]]
    is_json: bool = False

    def __call__(self, data: bytes) -> None:
        """Read an input; our own errors are a good answer."""
        try:
            self.read(data)
        except ForetimeError as error:
            _check(error)


def _check(error: ForetimeError) -> None:
    assert str(error).strip(), "it has to say something"


def _text(read: Callable[[str], object]) -> Callable[[bytes], object]:
    return lambda data: read(data.decode("utf-8", "replace"))


def _log(parse: Callable[..., object]) -> Callable[[bytes], object]:
    def read(text: str) -> None:
        parse(text, source="log", lenient=True)
        parse(text, source="log")

    return _text(read)


def _files(*patterns: str) -> Callable[[], Iterator[bytes]]:
    def seeds() -> Iterator[bytes]:
        for pattern in patterns:
            paths = sorted(path for path in ASSETS.glob(pattern) if path.is_file())
            assert paths, pattern
            for path in paths:
                lines = path.read_bytes()[:_MOST_SEED_BYTES].splitlines(keepends=True)
                yield b"".join(lines[:-1] or lines)

    return seeds


def _written(*texts: str) -> Callable[[], Iterator[bytes]]:
    return lambda: iter([text.encode() for text in texts])


def _examples(page: str) -> Callable[[], Iterator[bytes]]:
    """Give the TOML of a page of the documentation."""

    def seeds() -> Iterator[bytes]:
        text = (REPOSITORY / "docs" / page).read_text(encoding="utf-8")
        for block in text.split("```toml\n")[1:]:
            yield block.split("```")[0].encode()

    return seeds


def _few_jobs(*patterns: str) -> Callable[[], Iterator[bytes]]:
    """Give replies in JSON with two jobs, hosts or the like each."""

    def cut(value: Any) -> Any:
        if isinstance(value, list):
            return [cut(each) for each in value[:2]]
        if isinstance(value, dict):
            of_things = len(value) > 3 and all(isinstance(each, dict) for each in value.values())
            kept = list(value.items())[: 2 if of_things else None]
            return {name: cut(each) for name, each in kept}
        return value

    def seeds() -> Iterator[bytes]:
        for pattern in patterns:
            for path in sorted(ASSETS.glob(pattern)):
                yield json.dumps(cut(json.loads(path.read_text(encoding="utf-8")))).encode()

    return seeds


def _script(text: str) -> None:
    job = asked_job({}, {}, read_script(text, "job.sh"), _NOW)
    assert job.options is not None


def _table(data: bytes) -> None:
    # What parses is what would be written.
    assert table_bytes(parse_table(data)) == data


def _settings(text: str) -> None:
    settings = parse_settings(text)
    assert parse_settings(to_toml(settings)) == settings


@cache
def _outputs(folder: str) -> SiteOutput:
    return read_folder(ASSETS / folder)


def _each(*parsers: Callable[[Any], object]) -> Callable[[Any], None]:
    """Have several read the same."""

    def read(told: Any) -> None:
        for parse in parsers:
            try:
                parse(told)
            except ForetimeError as error:
                _check(error)

    return read


@cache
def _slurm_outputs() -> SiteOutput:
    return read_folder(ASSETS / "slurm/26.05/site")


@cache
def _pbs_outputs() -> SiteOutput:
    run = json.loads((ASSETS / "pbs/runs/default-1-1.json").read_text(encoding="utf-8"))
    config = (ASSETS / "pbs/runs/sched_config").read_text(encoding="utf-8")
    texts = {"server": run["server"], "sched": run["sched"], "hosts": json.dumps(run["nodes"])}
    return SiteOutput(texts | {"sched_config": config, "resource_group": "ann 11 root 20\n"})


def _saved_output(text: str) -> None:
    """Import a site of which one output is this."""
    kind = kind_of(text)
    if kind in SLURM:
        saved = _slurm_outputs()
        import_site(SiteOutput({**saved.texts, kind: text}, dict(saved.sources)), UTC)
    elif kind is not None:
        import_pbs_site(SiteOutput({**_pbs_outputs().texts, kind: text}), UTC, UTC)


@cache
def _hooks() -> list[Site]:
    folder = Path(tempfile.mkdtemp(prefix="foretime-fuzz-"))
    atexit.register(shutil.rmtree, folder)
    return [make(folder) for make in MAKERS.values()]


def _hooks_alike(text: str) -> None:
    """Have all hooks read settings and rows, with sums that are right."""
    lines, _, rows = text.partition("--\n")
    job = Job()
    content = table_text(tuple(rows.splitlines()), lines=tuple(lines.splitlines()))
    (planned,) = decisions(_hooks(), content.encode("latin-1"), (job,))
    assert planned is None or 0 < planned <= (job.walltime_s or 0)


_SWF = (
    "; Computer: SP2\n; MaxProcs: 100\n; UnixStartTime: 843177600\n"
    "1 0 12 600 4 -1 -1 4 3600 -1 1 1 1 -1 1 -1 -1 -1\n"
    "2 60 0 60.5 8 1e2 -1 8 -1 -1 0 2 1 -1 2 3 1 5\n"
)
_SACCT = (
    "JobID|User|Account|Partition|Submit|Start|End|Elapsed|Timelimit|NCPUS|State\n"
    "7|ann|physics|main|2026-01-01T00:00:00|2026-01-01T00:01:00|2026-01-01T01:01:00"
    "|01:00:00|02:00:00|8|COMPLETED\n"
    "8_1|bob||main|2026-01-01T00:00:00|Unknown|Unknown|00:00:00|UNLIMITED|1|CANCELLED by 7\n"
)
_COLUMNS = "submit_time=submit:s,runtime=runtime:s,requested_time=requested:s,processors=processors"
_CSV = "submit,wait,runtime,processors,requested\n0,10,600,4,3600\n60,0,60,8,120\n"
_COBALT = (
    "01/18/2018 18:46:40;E;7;queue=default qtime=1516300000.0 Resource_List.nodect=1024"
    " Resource_List.walltime=01:30:00 start=1516300060.0 end=1516301060.0"
    " exec_host=MIR-00000-33371-1-1024 queue_name=prod-short\n"
)
_SLURM_SCRIPT = (
    "#!/bin/bash\n#SBATCH -n 8 --time=2:00:00 -p 'main'\n#SBATCH --mem 4G --array=1-10%2\n"
    "#SBATCH --begin=now+2hours -d afterok:12 --gres=gpu:2\nsrun ./a.out\n"
)
_PBS_SCRIPT = (
    "#!/bin/sh\n#PBS -l select=2:ncpus=8:mem=4gb -l walltime=01:00:00\n#PBS -q workq -J 1-4\n"
    "#PBS -a 202601011200 -W depend=afterok:3\nhostname\n"
)
# Without what explains them.
_SETTINGS = "".join(
    line for line in to_toml(Settings()).splitlines(keepends=True) if not line.startswith("#")
)
_PBS_TEXTS = (
    'create queue workq\nset queue workq max_run = [u:PBS_GENERIC=4]\nset server f = "1"\n',
    "2:ncpus=8:mem=4gb+1:ngpus=1",
    "physics 10 root 40\nann 11 physics 20\n",
)
_HOOKS = "leave user left\n--\n" + "".join(f"{row}\n" for row in ROWS)

TARGETS: Mapping[str, Target] = {
    "swf": Target(_log(parse_swf), _written(_SWF)),
    "sacct": Target(_log(parse_sacct), _written(_SACCT)),
    "csv": Target(
        _log(partial(parse_csv_log, columns=_COLUMNS)), _written(_CSV, _CSV.replace(",", ";"))
    ),
    "pbs-accounting": Target(
        _log(parse_pbs_accounting), _files("pbs/openpbs/accounting/*", "pbs/torque/*")
    ),
    "cobalt": Target(_log(parse_cobalt_log), _written(_COBALT)),
    "slurm-json": Target(
        _each(
            lambda told: parse_queue(decoded(told, "squeue --json")),
            lambda told: parse_finished(decoded(told, "sacct --json")),
        ),
        _few_jobs("slurm/*/squeue.json", "slurm/*/sacct.json"),
        is_json=True,
    ),
    "slurm-text": Target(
        _text(
            _each(
                parse_configuration, parse_load, parse_partitions, parse_reservations,
                parse_site_factors, expand_nodes, read_note,
            )
        ),
        _files("slurm/26.05/s*.txt", "slurm/22.05/scontrol-*.txt"),
    ),
    "pbs-json": Target(
        _text(
            _each(
                pbs_json.parse_queue, pbs_json.parse_history, pbs_json.parse_configuration,
                pbs_json.parse_vnodes,
            )
        ),
        _few_jobs("pbs/openpbs/qstat*.json", "pbs/openpbs/pbsnodes.json"),
        is_json=True,
    ),
    "pbs-text": Target(
        _text(_each(parse_qmgr, parse_asked, parse_usage, pbs_json.parse_reservations)),
        _written(*_PBS_TEXTS),
    ),
    "saved-output": Target(
        _text(_saved_output), _files("pbs/runs/sched_config", "slurm/26.05/site/*.txt")
    ),
    "settings": Target(_text(_settings), _written(_SETTINGS)),
    "machine": Target(
        _text(lambda text: parse_machine(text, source="machine")), _examples("machines.md")
    ),
    "site": Target(_text(lambda text: parse_site(text, source="site")), _examples("site.md")),
    "campaign": Target(
        _text(lambda text: parse_campaign(text, Path("campaign.toml"))), _examples("campaigns.md")
    ),
    "script": Target(_text(_script), _written(_SLURM_SCRIPT, _PBS_SCRIPT)),
    "table": Target(_table, _written(table_text())),
    "hooks": Target(lambda data: _hooks_alike(data.decode("latin-1")), _written(_HOOKS)),
}  # fmt: skip
"""By name."""
