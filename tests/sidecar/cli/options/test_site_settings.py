"""Which settings a command goes by, and what it says where there are none."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from foretime_estimators.jobs.errors import InputError
from foretime_sidecar.answers.daemon_client import DaemonError
from foretime_sidecar.cli.application import app
from foretime_sidecar.cli.options import daemon_options
from foretime_sidecar.cli.options.daemon_options import where
from foretime_sidecar.cli.options.site_settings import SiteSettings, find_settings, site_settings
from foretime_sidecar.settings.api_settings import ApiSettings
from foretime_sidecar.settings.settings import Settings
from foretime_sim.policies.policy_file import read_policy
from typer.testing import CliRunner

Run = Callable[..., tuple[int, str, str]]
Site = Callable[[str], Path]
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="root itself may read everything")
DEFAULT = ApiSettings().listen


def write(path: Path, mode: str = "enforce", scheduler: str = "slurm") -> Path:
    mechanism = {"slurm": "slurm-soft-limit", "pbs": "pbs-soft-walltime"}[scheduler]
    path.write_text(
        f'[hook]\nmode = "{mode}"\nmechanism = "{mechanism}"\ndisable_file = "{path}.off"\n'
        f'[table]\npath = "{path}.table"\n[store]\npath = "{path}.store"\n'
        f'[api]\nlisten = "unix:{path}.sock"\n[scheduler]\nkind = "{scheduler}"\n'
        f'commands_dir = "{path.parent}"\n'
    )
    return path


@pytest.fixture
def default(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the site's settings are if nothing else is said; nothing is there yet."""
    path = tmp_path / "default.toml"
    monkeypatch.setattr(daemon_options, "SETTINGS_FILE", path)
    return path


def test_no_test_reads_this_machines_settings() -> None:
    assert not daemon_options.SETTINGS_FILE.exists()
    assert daemon_options.SETTINGS_VARIABLE not in os.environ
    assert find_settings(None).file is None


def test_an_option_goes_over_the_environment_and_that_over_the_default(
    default: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert find_settings(None) == SiteSettings(Settings(), None)
    write(default)
    assert find_settings(None).file == default
    named = write(tmp_path / "named.toml")
    monkeypatch.setenv("FORETIME_SETTINGS", str(named))
    assert find_settings(None).file == named
    given = write(tmp_path / "given.toml")
    assert find_settings(given).file == given
    assert find_settings(given).settings.table.path == f"{given}.table"
    assert where(None, None) == f"unix:{named}.sock"
    assert where(None, Path("/s")) == "unix:/s"
    monkeypatch.setenv("FORETIME_SETTINGS", "")
    assert find_settings(None).file == default, "an empty variable names nothing"


def test_a_file_that_is_named_must_be_there(
    default: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(default)
    none = tmp_path / "none.toml"
    for asks in (lambda: site_settings(none), lambda: where(none, None)):
        with pytest.raises(InputError, match=r"^/.*none\.toml: can't read the settings: No such"):
            asks()
    monkeypatch.setenv("FORETIME_SETTINGS", str(none))
    for asks in (lambda: site_settings(None), lambda: where(None, None)):
        with pytest.raises(InputError, match=r"^\$FORETIME_SETTINGS: /.*none\.toml: can't read"):
            asks()


def test_a_wrong_default_is_told_of(default: Path) -> None:
    default.write_text("[hook]\nmode = 'enforec'\n")
    with pytest.raises(InputError, match=r"default\.toml:2: hook\.mode = 'enforec'"):
        site_settings(None)
    default.unlink()
    default.mkdir()
    with pytest.raises(InputError, match="Is a directory"):
        site_settings(None)


def test_where_the_daemon_is_needs_no_other_setting_to_be_right(default: Path) -> None:
    default.write_text('[hook]\nmode = "enforec"\n')
    assert where(None, None) == DEFAULT
    default.write_text('[hook]\nmode = "enforec"\n[api]\nlisten = "127.0.0.1:8642"\n')
    assert where(None, None) == "127.0.0.1:8642"
    default.write_text('[hook]\nmode = "enforec"\n[api]\nsocket_mode = "0600"\n')
    assert where(None, None) == DEFAULT


def test_files_may_begin_with_a_byte_order_mark(default: Path, tmp_path: Path) -> None:
    default.write_text("[api]\nlisten = '127.0.0.1:8642'\n", encoding="utf-8-sig")
    assert where(None, None) == "127.0.0.1:8642"
    assert site_settings(None).api.listen == "127.0.0.1:8642"
    policy = tmp_path / "policy.toml"
    policy.write_text('order = "sjf"\n', encoding="utf-8-sig")
    assert read_policy(str(policy)) == {"order": "sjf"}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("api = 1\n", "default.toml:1: api = 1: it is a section; write [api] and below it"),
        ("\n[api]\nlisten = 8642\n", "default.toml:3: api.listen = 8642: give a text"),
        ("\n[api]\nlistne = 'unix:/s'\n", "default.toml:3: unknown setting 'api.listne'; did you"),
        ("[hook]\nmode = 1\n[api]\nlistne = ''\n", "default.toml:4: unknown setting 'api.listne'"),
        ("[apii]\nlisten = 'unix:/s'\n", "default.toml:1: unknown setting 'apii'; did you mean"),
        ("listen = 'unix:/s'\n", "default.toml:1: unknown setting 'listen'; did you mean"),
        ("[api\n", "default.toml:1: not TOML: "),
        ("\udcff", "default.toml: can't read the settings: not UTF-8 text"),
    ],
)
def test_where_the_daemon_is_said_wrongly(default: Path, text: str, says: str) -> None:
    default.write_bytes(text.encode(errors="surrogateescape"))
    with pytest.raises(InputError) as caught:
        where(None, None)
    assert says in str(caught.value)


def test_an_enforcing_site_is_not_told_that_it_observes(run: Run, default: Path) -> None:
    write(default)
    code, said, err = run("status")
    assert (code, err) == (1, "")
    assert said.startswith(f"settings {default}\nmode     none: ")
    assert "(set: enforce)" in said
    assert f"table    {default}.table: " in said
    answer = json.loads(run("status", "--json")[1])
    assert (answer["settings"], answer["mode_set"]) == (str(default), "enforce")


def test_without_a_file_the_commands_say_so(run: Run, default: Path) -> None:
    missing = f"no settings file: {default} is not there, so every setting is at its default"
    code, said, _ = run("status")
    assert said.splitlines()[0] == f"settings {missing}"
    assert json.loads(run("status", "--json")[1])["settings"] is None
    (first, *_) = json.loads(run("doctor", "--json", "--commands-dir", default.parent)[1])
    assert (first["check"], first["health"], first["message"]) == ("settings", "warning", missing)
    code, said, err = run("install", "pbs", "--hook-only", "--json")
    assert (code, err) == (0, f"note: {missing}\n")
    assert set(json.loads(said)) == {"host", "files", "commands", "notes"}


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["wait", "-n", "1", "-t", "1"], "{0}.sock"),
        (["explain", "4711"], "{0}.sock"),
        (["decisions"], "{0}.sock"),
        (["estimators"], "{0}.sock"),
        (["estimators", "--replay"], "{0}.store"),
        (["forget", "ann", "--yes"], "{0}.sock"),
        (["report", "ab"], "{0}.sock"),
        (["status"], "{0}.sock"),
        (["enable"], "{0}.off"),
        (["install", "pbs", "--hook-only"], '"table": "{0}.table"'),
        (["install", "slurm", "--hook-only"], "{folder}/scontrol"),
        (["uninstall", "slurm", "--hook-only"], "{folder}/scontrol"),
        (["doctor", "--json"], "{0}.table"),
        (["watchdog"], "{folder}/squeue"),
        (["serve"], "{0}.sock"),
    ],
    ids=" ".join,
)
def test_every_command_goes_by_the_sites_settings(
    run: Run, default: Path, words: list[str], says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(default, scheduler="pbs" if "pbs" in words else "slurm")
    monkeypatch.setattr("tenacity.nap.time.sleep", lambda seconds: None)
    if words == ["serve"]:
        Path(f"{default}.sock").write_text("in its place")
    _, out, err = run(*words)
    assert says.format(default, folder=default.parent) in " ".join((out + err).split())


def test_disable_makes_the_sites_file(run: Run, default: Path) -> None:
    write(default)
    run("disable")
    assert Path(f"{default}.off").exists()


@pytest.mark.parametrize("command", ["wait", "status", "enable", "serve", "doctor", "watchdog"])
def test_help_says_the_default(command: str) -> None:
    said = CliRunner().invoke(app, [command, "--help"], env={"COLUMNS": "200"}).output
    words = " ".join(said.replace("│", " ").split())
    assert "Default: $FORETIME_SETTINGS, or /etc/foretime/foretime.toml." in words


# -- settings that users may not read -------------------------------------------------------------


@pytest.fixture
def closed(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The site's settings, for root alone; the test is somebody else."""
    with TemporaryDirectory() as folder:  # pytest's own folders are for their owner only
        Path(folder).chmod(0o755)
        path = write(Path(folder) / "foretime.toml")
        path.chmod(0o600)
        monkeypatch.setattr(daemon_options, "SETTINGS_FILE", path)
        with _as_nobody():
            yield path


@contextmanager
def _as_nobody() -> Iterator[None]:
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


@needs_root
def test_users_ask_where_the_daemon_listens_by_default(
    closed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with TemporaryDirectory() as folder, closing(socket.socket(socket.AF_UNIX)) as listening:
        default = f"unix:{folder}/s"
        monkeypatch.setattr(daemon_options, "DEFAULT_LISTEN", default)
        with pytest.raises(DaemonError) as caught:
            where(None, None)
        assert str(caught.value) == (
            f"no foretime daemon listens at {folder}/s, and you may not read {closed}, which may "
            "name another place; ask the administrator, and give --socket"
        )
        listening.bind(f"{folder}/s")
        assert where(None, None) == default


@needs_root
def test_other_commands_do_not_go_by_the_defaults_then(closed: Path) -> None:
    with pytest.raises(InputError) as caught:
        site_settings(None)
    assert str(caught.value) == (
        f"{closed}: can't read the settings: Permission denied; run this as root or as the "
        "daemon's user, or name another file"
    )


@needs_root
def test_a_file_that_is_named_must_be_readable_for_users_too(
    closed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(InputError, match="Permission denied"):
        where(closed, None)
    monkeypatch.setenv("FORETIME_SETTINGS", str(closed))
    with pytest.raises(InputError, match=r"^\$FORETIME_SETTINGS: .*Permission denied"):
        where(None, None)
