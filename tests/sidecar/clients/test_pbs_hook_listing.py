"""Hooks as qmgr lists them."""

from __future__ import annotations

from pathlib import Path

from foretime_sidecar.clients.pbs.server import parse_hooks


def test_a_recorded_listing_of_hooks_with_wrapped_lines_is_read(repository: Path) -> None:
    text = (repository / "tests/assets/pbs/openpbs/qmgr-list-hook.txt").read_text()
    hooks = parse_hooks(text)
    assert list(hooks) == ["pbs_cgroups", "foretime"]
    assert len(hooks["pbs_cgroups"].events) == 11
    assert {"execjob_launch", "execjob_attach", "exechost_startup"} < hooks["pbs_cgroups"].events
    assert (hooks["pbs_cgroups"].number("order"), hooks["pbs_cgroups"].enabled) == (100, False)
    assert hooks["foretime"].events == {"queuejob", "postqueuejob", "modifyjob", "runjob"}


def test_a_listing_of_hooks_is_read() -> None:
    text = (
        'Hook a\n    type = site\n    event = "queuejob,runjob"\n    order = 3\n\n'
        "Hook b\n    enabled = False\n"
    )
    hooks = parse_hooks(text)
    assert (hooks["a"].events, hooks["a"].number("order")) == ({"queuejob", "runjob"}, 3)
    assert (hooks["a"].enabled, hooks["b"].enabled, hooks["b"].events) == (True, False, set())
    assert parse_hooks("") == {}
