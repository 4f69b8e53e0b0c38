"""Files of ``plugin`` and ``contrib`` are found in a checkout, an environment and a user's own."""

from __future__ import annotations

import sysconfig
from pathlib import Path

import pytest
from foretime_estimators.jobs.errors import InputError
from foretime_sidecar.install.contrib_files import contrib_file
from foretime_sim.files import shipped_files
from foretime_sim.mocks.plugin_files import plugin_file


def test_a_checkout_has_both_folders(repository: Path) -> None:
    assert plugin_file("slurm/foretime.lua") == repository / "plugin/slurm/foretime.lua"
    unit = "systemd/foretime.service.d/pbs.conf"
    assert contrib_file(unit) == repository / "contrib" / unit


@pytest.mark.parametrize("scheme", ["", "posix_user"])
def test_an_installation_is_searched(
    scheme: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shipped_files, "__file__", str(tmp_path / "a/b/c/site-packages/here.py"))
    monkeypatch.setattr(
        sysconfig, "get_path", lambda _, asked="": str(tmp_path / (asked or "environment"))
    )
    with pytest.raises(InputError, match=r"contrib file 'a\.conf' is not in .*: install foretime"):
        contrib_file("a.conf")
    there = tmp_path / (scheme or "environment") / "share/foretime/contrib/a.conf"
    there.parent.mkdir(parents=True)
    there.touch()
    assert contrib_file("a.conf") == there
