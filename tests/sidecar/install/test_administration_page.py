"""What the administrators' pages show is what the commands print; contrib/ is what they say."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from foretime_sidecar.install.slurm_conf import SlurmConf
from foretime_sidecar.install.slurm_install import LUA, PROLOG, SOFT_LIMIT
from foretime_sidecar.safety.decision_log import Action
from foretime_sidecar.safety.reasons import REASONS
from foretime_sidecar.settings.settings_file import parse_settings

from tests.support.guide_page import NOT_RUN, commands_of


@pytest.fixture
def page(repository: Path) -> str:
    return (repository / "docs/administration.md").read_text()


def test_every_decision_and_reason_is_explained(page: str) -> None:
    for word, text in REASONS.items():
        assert f"| `{word}` | {text} |" in page
    rows = " ".join(re.findall(r"^\| (`.*?) \|", page, flags=re.MULTILINE))
    for action in Action:
        assert f"`{action}`" in rows


def test_the_settings_shown_are_settings(page: str) -> None:
    (text,) = re.findall(r"```toml\n(.*?)```", page, flags=re.DOTALL)
    assert parse_settings(text).hook.enforce_share_percent == 10
    commented = re.sub(r"^# (\w+ =)", r"\1", text, flags=re.MULTILINE)
    assert parse_settings(commented).hook.enforce_only_accounts == ["physics"]


def test_what_a_user_is_told_is_in_the_hook(page: str, repository: Path) -> None:
    hook = (repository / "plugin/slurm/foretime.lua").read_text()
    said = " ".join(page.split())
    for words in ("jobs like this one mostly ended within", "this is said at most once a day"):
        assert words in said
    assert "jobs like this one mostly ended within" in hook


def test_the_snippets_of_slurm_conf_are_what_install_sets(repository: Path) -> None:
    native = SlurmConf(repository / "contrib/slurm/soft_limit.conf")
    rewriting = SlurmConf(repository / "contrib/slurm/rewrite_limit.conf")
    for conf in (native, rewriting):
        assert LUA[1] in conf.words(LUA[0])
        assert conf.value("SchedulerType") == "sched/backfill"
    assert SOFT_LIMIT[1] in native.words(SOFT_LIMIT[0])
    assert rewriting.value(PROLOG) == "/etc/slurm/prolog_slurmctld"
    assert not rewriting.words(SOFT_LIMIT[0])


@pytest.mark.parametrize("name", ["foretime.service", "foretime-watchdog.service"])
def test_systemd_takes_the_units(repository: Path, tmp_path: Path, name: str) -> None:
    if shutil.which("systemd-analyze") is None:
        pytest.skip("no systemd-analyze here: install systemd to check the units")
    # The command that they run need not be installed here.
    text = (repository / "contrib/systemd" / name).read_text()
    unit = tmp_path / name
    unit.write_text(text.replace("/usr/bin/foretime", "/bin/true"))
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", str(unit)],
        capture_output=True,
        text=True,
        check=False,
    )
    ours = [line for line in done.stderr.splitlines() if name in line]
    assert ours == []


GUIDES = ("install_slurm.md", "install_pbs.md")


@pytest.mark.parametrize("name", GUIDES)
def test_a_guide_is_one_page_whose_commands_are_all_run(name: str, repository: Path) -> None:
    page = repository / "docs" / name
    lines = page.read_text().splitlines()
    assert len(lines) <= 150
    assert max(map(len, lines)) <= 120
    commands = [line for _, line in commands_of(page)]
    assert all(line in commands for line in NOT_RUN), "no exception outlives its line"
    run = [line for line in commands if line not in NOT_RUN]
    for words in ("install", "doctor", "status", "disable", "uninstall", "serve"):
        assert any(f"foretime {words}" in line for line in run)
    sections = {heading for heading, _ in commands_of(page)}
    assert {"Get it", "Observe", "A share", "All", "Upgrade", "Back", "Containers"} <= sections
