"""foretime install, disable, enable and uninstall on a live cluster, as its administrator."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from foretime_sidecar.table.table import Mechanism, Mode, TableRow, TableSettings

from tests.slurm.harness.slurm_cluster import SlurmCluster
from tests.slurm.harness.slurm_releases import SlurmRelease

ROWS = (TableRow("user", "alice", 0, 200_000), TableRow("user", "bob", 0, 200_000))


class Administrator:
    """Runs foretime as root beside slurmctld."""

    def __init__(self, cluster: SlurmCluster, mode: str = "enforce") -> None:
        self.cluster = cluster
        self.native = cluster.release.soft_limit
        self.etc = cluster.folder / "etc"
        self.off = cluster.folder / "table/foretime.off"
        self.settings_file = cluster.folder / "foretime.toml"
        mechanism = "slurm-soft-limit" if self.native else "rewrite-limit"
        self.settings_file.write_text(
            f'[scheduler]\ncommands_dir = "{cluster.commands}"\n'
            f'[table]\npath = "{cluster.table}"\n'
            f'[hook]\nmode = "{mode}"\nmechanism = "{mechanism}"\ndisable_file = "{self.off}"\n'
            '[queue_order]\norder = "none"\n'
            f'[store]\npath = "{cluster.folder}/store"\n'
            f'[api]\nlisten = "unix:{cluster.folder}/foretime.sock"\n'
        )

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        more = ["--settings", str(self.settings_file)]
        if "slurm" in words or "doctor" in words:
            more += ["--conf", str(self.etc / "slurm.conf")]
        if "slurm" in words:
            more += ["--hook-only"]  # the host is the machine's own
        return subprocess.run(
            [Path(sys.executable).with_name("foretime"), *words, *more],
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )

    def checked(self, *words: str) -> str:
        reply = self.run(*words)
        assert reply.returncode == 0, reply.stderr
        if words[:3] == ("install", "slurm", "--yes") and "restart slurmctld" in reply.stdout:
            # As an administrator does who reads it.
            assert self.off.exists(), "the hook is off so long"
            self.cluster.restart_slurmctld()
            self.checked("enable")
        return reply.stdout

    rows = ROWS

    def table_settings(self, mode: Mode) -> TableSettings:
        return TableSettings(
            mode=mode,
            mechanism=Mechanism.TIME_MIN if self.native else Mechanism.REWRITE_LIMIT,
            minimum_adjustment=0.0,
            minimum_scheduled_time_s=60,
        )

    def table(self) -> None:
        self.cluster.publish(ROWS, self.table_settings(Mode.ENFORCE))

    def files(self) -> dict[str, tuple[bytes, int]]:
        return {
            path.name: (path.read_bytes(), path.stat().st_mode)
            for path in sorted(self.etc.iterdir())
        }

    def planned(self, job_id: str) -> bool:
        job = self.cluster.job(job_id)
        times = (job["TimeLimit"], job["TimeMin"])
        assert times in (
            ("01:00:00", "N/A"),
            ("01:00:00", "00:12:00") if self.native else ("00:12:00", "N/A"),
        )
        return times != ("01:00:00", "N/A")

    def submit(self) -> str:
        return self.cluster.sbatch("-t", "60", "--hold")


@pytest.mark.every_release
def test_a_site_can_be_installed_disabled_enabled_and_uninstalled(slurm: SlurmCluster) -> None:
    admin = Administrator(slurm)
    conf = admin.etc / "slurm.conf"
    odd = (
        "# the site's own words \\\nSchedulerParameters=bf_interval=5,\\\nsched_interval=3  # odd\n"
    )
    conf.write_text(f"{conf.read_text().replace('SchedulerParameters', '#Was')}{odd}"[:-1])
    slurm.checked(["scontrol", "reconfigure"])
    before = admin.files()
    admin.table()

    shown = admin.checked("install", "slurm")
    assert ("+sched_interval=3,time_min_as_soft_limit  # odd" in shown) is admin.native
    assert "+JobSubmitPlugins=lua" in shown
    assert admin.files() == before
    done = json.loads(admin.checked("install", "slurm", "--yes", "--json"))["done"]
    assert f"wrote {admin.etc}/foretime.lua" in done
    installed = admin.files()
    assert "nothing to do" in admin.checked("install", "slurm", "--yes")
    assert "everything is as it should be" in admin.checked("install", "slurm")
    assert admin.files() == installed

    first = admin.submit()
    assert admin.planned(first)
    assert "1 waiting jobs" in admin.checked("disable")
    assert not admin.planned(first)
    second = admin.submit()
    assert not admin.planned(second)
    assert f"{admin.off}: removed" in admin.checked("enable")
    third = admin.submit()
    assert admin.planned(third)
    own = slurm.sbatch("-t", "50", "--time-min", "20", "--hold", user="carol")

    steps = admin.checked("uninstall", "slurm").splitlines()
    if admin.native:
        hook, soft_limit = (
            next(at for at, step in enumerate(steps) if word in step)
            for word in ("without lua", "without time_min_as_soft_limit")
        )
        assert hook < soft_limit
    done = json.loads(admin.checked("uninstall", "slurm", "--yes", "--json"))["done"]
    assert done[1] == "gave 1 waiting jobs back what was asked for"
    assert admin.files() == before
    assert not admin.off.exists()
    for job in (first, second, third):
        assert not admin.planned(job)
    assert slurm.job(own)["TimeMin"] == "00:20:00"  # its user's own word
    config = slurm.checked(["scontrol", "show", "config"])
    assert "time_min_as_soft_limit" not in config
    assert not admin.planned(admin.submit())
    assert "nothing is installed" in admin.checked("uninstall", "slurm", "--yes")


SITE_SCRIPT = """\
-- The site's own rules.
function slurm_job_submit(job_desc, part_list, submit_uid)
  if job_desc.comment == "no" then
    slurm.log_user("refused by the site")
    return 2051
  end
  return slurm.SUCCESS
end

function slurm_job_modify(job_desc, job_rec, part_list, modify_uid)
  return slurm.SUCCESS
end

slurm.log_info("initialized")
return slurm.SUCCESS
"""


def test_a_site_with_a_script_of_its_own(slurm: SlurmCluster) -> None:
    admin = Administrator(slurm)
    script = admin.etc / "job_submit.lua"
    script.write_text(SITE_SCRIPT)
    refused = admin.run("install", "slurm")
    assert refused.returncode == 2
    assert "not in use (JobSubmitPlugins lacks lua)" in refused.stderr
    slurm.set_conf({"JobSubmitPlugins": "lua"})
    before = admin.files()
    admin.table()
    line = json.loads(admin.checked("install", "slurm", "--json"))["script_line"]
    admin.checked("install", "slurm", "--yes")
    assert script.read_text() == SITE_SCRIPT.replace("\nreturn", f"\n{line}\nreturn")
    assert admin.planned(admin.submit())
    reply = slurm.try_sbatch("-t", "60", "--comment=no")
    assert reply.returncode != 0
    assert "refused by the site" in reply.stderr
    # Somebody changes the script meanwhile: it loses the line alone.
    script.write_text(script.read_text().replace("2051", "2052"))
    assert "only Foretime's line was taken out" in admin.checked("uninstall", "slurm", "--yes")
    assert script.read_text() == SITE_SCRIPT.replace("2051", "2052")
    script.write_text(SITE_SCRIPT)
    assert admin.files() == before


def test_a_reconfigure_that_fails_leaves_nothing(slurm: SlurmCluster) -> None:
    admin = Administrator(slurm)
    before = admin.files()
    commands = slurm.folder / "refusing"
    commands.mkdir()
    for name in ("squeue", "sacct", "sinfo", "sacctmgr"):
        (commands / name).symlink_to(slurm.commands / name)
    conf = admin.etc / "slurm.conf"
    scontrol = commands / "scontrol"
    scontrol.write_text(
        f'#!/bin/sh\nif [ "$1" = reconfigure ] && grep -q "^JobSubmitPlugins=lua" {conf}; then\n'
        f'  echo refused >&2; exit 1\nfi\nexec {slurm.commands}/scontrol "$@"\n'
    )
    scontrol.chmod(0o755)
    settings = admin.settings_file.read_text()
    admin.settings_file.write_text(settings.replace(str(slurm.commands), str(commands)))
    failed = admin.run("install", "slurm", "--yes")
    assert failed.returncode not in (0, 2)
    assert "refused" in failed.stderr
    assert "Everything is as it was before." in failed.stderr
    assert admin.files() == before
    assert "Traceback" not in failed.stderr
    slurm.wait_for(slurm.answers, "slurmctld")
    assert "time_min_as_soft_limit" not in slurm.checked(["scontrol", "show", "config"])
    assert not admin.planned(admin.submit())


def test_the_soft_limit_stays_while_a_job_runs_that_could_come_back(
    native_release: SlurmRelease, new_cluster: Callable[..., SlurmCluster]
) -> None:
    """A requeued job has its TimeMin still, and would be killed at it."""
    slurm = new_cluster(native_release)
    admin = Administrator(slurm)
    before = admin.files()
    admin.table()
    admin.checked("install", "slurm", "--yes")
    job = slurm.sbatch("-t", "60", "--requeue")
    slurm.wait_for_state(job, "RUNNING")
    assert admin.planned(job)
    told = admin.checked("uninstall", "slurm", "--yes")
    assert f"time_min_as_soft_limit stays, and so does {admin.off}: 1 jobs run" in told
    config = slurm.checked(["scontrol", "show", "config"])
    assert "time_min_as_soft_limit" in config
    assert "= lua" not in config
    slurm.scontrol("requeue", job)
    slurm.wait_for(lambda: slurm.job(job)["JobState"] == "PENDING", "the job waits again")
    assert admin.planned(job), "and has its TimeMin"
    again = admin.checked("uninstall", "slurm", "--yes")
    assert "gave 1 waiting jobs back" in again
    assert not admin.planned(job)
    assert "time_min_as_soft_limit" not in slurm.checked(["scontrol", "show", "config"])
    assert admin.files() == before
    assert not admin.off.exists()


def test_the_sites_own_prolog_runs_after_ours(slurm: SlurmCluster) -> None:
    admin = Administrator(slurm)
    if admin.native:
        return
    own = admin.etc / "own_prolog"
    seen = slurm.jobs_folder / "seen"
    own.write_text(f"#!/bin/sh\necho $SLURM_JOB_ID $# >>{seen}\n")
    own.chmod(0o755)
    slurm.set_conf({"PrologSlurmctld": str(own)}, restart=True)
    before = admin.files()
    admin.table()
    assert f"{own} runs after it" in admin.checked("install", "slurm")
    admin.checked("install", "slurm", "--yes")
    assert "PrologSlurmctld" in slurm.checked(["scontrol", "show", "config"])
    job = slurm.sbatch("-t", "60")
    slurm.wait_for_state(job, "RUNNING")
    slurm.wait_for(seen.exists, "the site's own script")
    assert not admin.planned(job), "its limit is its own"
    assert slurm.job(job)["AdminComment"].startswith("foretime:treq=60,tsched=12")
    admin.checked("uninstall", "slurm", "--yes")
    assert admin.files() == before
    other = slurm.sbatch("-t", "60")
    slurm.wait_for(lambda: len(seen.read_text().split("\n")) == 3, "the site's own script again")
    assert seen.read_text().split() == [job, "0", other, "0"]
