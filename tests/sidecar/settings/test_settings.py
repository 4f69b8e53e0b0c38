"""Settings: read, refused with file, line and name, and printed as the documentation has them."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from foretime_estimators.accuracy.accuracy import AccuracySettings, Scheme
from foretime_estimators.jobs.errors import InputError
from foretime_sidecar.settings.settings import Settings
from foretime_sidecar.settings.settings_file import (
    describe,
    origins,
    parse_settings,
    read_settings,
    to_markdown,
    to_toml,
)

DOCUMENTED = {"contrib/foretime.toml": to_toml, "docs/settings.md": to_markdown}


@pytest.mark.parametrize("path", DOCUMENTED)
def test_the_documentation_is_what_is_printed(path: str, repository: Path) -> None:
    assert (repository / path).read_text() == DOCUMENTED[path](), (
        "write it anew: foretime config show (--markdown)"
    )


def test_the_file_with_every_default_gives_the_defaults(repository: Path) -> None:
    assert read_settings(repository / "contrib/foretime.toml") == Settings()
    assert parse_settings("") == Settings()


def test_every_setting_is_described() -> None:
    values = tomllib.loads(to_toml())
    settings = list(describe())
    assert [(s.section, s.key) for s in settings] == [
        (section, key) for section, keys in values.items() for key in keys
    ]
    for setting in settings:
        assert setting.meaning.endswith("."), f"{setting.section}.{setting.key}: {setting.meaning}"
        assert setting.type


def test_changed_settings_are_printed_and_read_alike() -> None:
    text = """
        [hook]
        mode = "enforce"
        leave_users = ["o'neil", "back\\\\slash", 'quo"te', "€"]
        [store]
        path = "/\\u007f\\n"
        [accuracy]
        percentile = 1
        class_bounds_s = []
        arrays_count_once = false
    """
    settings = parse_settings(text)
    assert {name for _, name in settings.hook.left_alone} == {
        "o'neil",
        "back\\slash",
        'quo"te',
        "€",
    }
    assert settings.store.path == "/\x7f\n"
    assert parse_settings(to_toml(settings)) == settings


def test_the_accuracy_section_is_the_production_rule() -> None:
    assert Settings().accuracy.to_model() == AccuracySettings.production()
    assert Settings().accuracy.to_scheme() is Scheme.COMBINED
    text = "[accuracy]\nscheme = 'user'"
    assert parse_settings(text).accuracy.to_scheme() is Scheme.USER


@pytest.mark.parametrize(
    ("text", "said"),
    [
        # unknown names
        ("[hook]\nmod = 'observe'", r"f:2: unknown setting 'hook.mod'; did you mean 'hook.mode'\?"),
        ("\n[hooks]\nmode = 'observe'", r"f:2: unknown setting 'hooks'; did you mean 'hook'\?"),
        ("retention_days = 4", r"f:1: .*did you mean 'store.retention_days'\?"),
        ("[table]\nretention_days = 4", r"f:2: .*did you mean 'store.retention_days'\?"),
        ("[api]\nqqqqqq = 1", "f:2: unknown setting 'api.qqqqqq'; foretime config show lists them"),
        # wrong types and values
        ("[store]\n\npath = 3", "f:3: store.path = 3: give a text"),
        ("[store]\npath = ''", "f:2: store.path = '': give a text of 1 or more characters"),
        ("[scheduler]\npoll_interval_s = 1.5", "f:2: .*poll_interval_s = 1.5: give a whole number"),
        ("[scheduler]\npoll_interval_s = true", "f:2: scheduler.poll_interval_s = True: "),
        ("[scheduler]\npoll_interval_s = 0", "f:2: .*: give 1 or more"),
        ("[scheduler]\nattempts = 21", "f:2: .*: give at most 20"),
        ("[hook]\nmode = 'off'", "f:2: hook.mode = 'off': give 'observe', 'advise' or 'enforce'"),
        ("[hook]\nleave_qos = 'long'", "f:2: hook.leave_qos = 'long': give a list"),
        ("[hook]\nleave_users = ['']", "f:2: hook.leave_users.0 = '': give a text of 1 or more"),
        ("[accuracy]\npercentile = 0", "f:2: accuracy.percentile = 0: give more than 0"),
        ("[accuracy]\npercentile = nan", "f:2: accuracy.percentile = nan"),
        ("[accuracy]\nrounding_s = 90", "f:2: accuracy.rounding_s = 90: .*multiple of 60"),
        ("[api]\nsmallest_group = 4", "f:2: api.smallest_group = 4: give 5 or more"),
        ("[api]\nsocket_mode = '999'", "f:2: api.socket_mode = '999': "),
        ("[api]\nproxy_header = 'a:'", "f:2: .*give a header's name of letters"),
        ("[hook]\ndisable_file = 'off'", "f:2: hook.disable_file = 'off': write the whole path"),
        ("[table]\npath = 'table'", "f:2: table.path = 'table': write the whole path"),
        ("[hook]\nleave_users = ['a', 'b ']", "f:2: hook.leave_users.1 = .*is no name"),
        ('[hook]\nleave_users = ["a\\nb"]', "f:2: hook.leave_users.0 = .*is no name"),
        ("[hook]\nstarvation_guard_s = 10_000_000_001", "f:2: .*give at most 10,000,000,000"),
        ("[accuracy]\nclass_bounds_s = [60, 99_999_999_999]", "f:2: .*give at most 10,000,000,000"),
        ("[scheduler]\ncluster = 'a b'", "f:2: .*give the name of one cluster"),
        ("store = 4", r"f:1: store = 4: it is a section; write \[store\] and below it"),
        # other ways to write the same
        ("\nhook.mode = 'x'", "f:2: hook.mode = 'x'"),
        ("\nhook = {mode = 'x'}", "f:2: hook.mode = 'x'"),
        # not TOML
        ("[hook\nmode = 1", r"f:1: not TOML: .* \(column 6\)"),
        (f"[hook]\nrounding_s = {'9' * 5_000}", "f:2: a number is far too long"),
        ("[hook]\nmode = 'a'\nmode = 'b'", r"f:3: not TOML: Cannot overwrite a value \(at"),
        ("[hook]\n[api\n\n", r"f:2: not TOML: Expected ']'"),
        ("[hook]\nmode = [1,\n2\n\n", r"f:3: not TOML: Unclosed array \(at end of document\)"),
        # each valid, but not together
        ("[accuracy]\nclass_bounds_s = [7200, 3600]", "f:2: accuracy setting class_bounds_s"),
        ("\n[accuracy]\nhalf_life_s = 86400", "f:2: .*window_s.*half_life_s.*leave the other out"),
        ("[accuracy]\nwindow_s = 0\nhalf_life_s = 60", "f:3: .*half_life_s = 60: .*at least a day"),
        ("[table]\nvalid_for_s = 839", "f:2: table.valid_for_s = 839: .*at least 840"),
        ("[table]\npublish_interval_s = 86400", "f:1: table.valid_for_s = 21600: .*173040"),
        ("[scheduler]\noverlap_s = 86400\n[store]\nretention_days = 1", "f:2: .*learned twice"),
        ('[learned]\nestimator = "blend"', r"f:2: .*write blend:A, such as"),
    ],
)  # fmt: skip
def test_wrong_settings_are_named(text: str, said: str) -> None:
    with pytest.raises(InputError, match=said) as caught:
        parse_settings(text, "f")
    assert "\n" not in str(caught.value)


def refusal(text: str) -> str:
    """Give why settings are refused; "" if they are not."""
    try:
        parse_settings(text)
    except InputError as error:
        return str(error)
    return ""


@pytest.mark.parametrize(
    "value", ['"x"', "1.5", "-1", "true", "[1]", "{}", "nan", '""', "2026-01-31"]
)
def test_every_setting_is_refused_in_our_own_words(value: str) -> None:
    texts = [f"[{each.section}]\n{each.key} = {value}\n" for each in describe()]
    refused = list(filter(None, map(refusal, texts)))
    assert len(refused) > 20
    for said in refused:
        assert not re.search("[Ii]nput|should|valid (int|str|num|list|bool|dict)", said)


def test_settings_that_just_go_together_are_taken() -> None:
    parse_settings("[hook]\nstarvation_guard_s = 10_000_000_000\n[scheduler]\ncommands_dir = ''")
    parse_settings("[table]\nvalid_for_s = 840")
    parse_settings("[scheduler]\noverlap_s = 86399\n[store]\nretention_days = 1")
    parse_settings("[accuracy]\nwindow_s = 0\nhalf_life_s = 86400")


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"nowhere\.toml: can't read the settings: No such file"):
        read_settings(tmp_path / "nowhere.toml")
    (tmp_path / "latin").write_bytes(b"# \xe4\n")
    with pytest.raises(InputError, match="latin: can't read the settings: not UTF-8 text"):
        read_settings(tmp_path / "latin")


def test_where_a_value_comes_from_is_shown(tmp_path: Path) -> None:
    path = tmp_path / "foretime.toml"
    path.write_text("# ours\n[hook]\nmode = 'advise'\n")
    shown = to_toml(read_settings(path), origins(path))
    (mode,) = re.findall(r"\((.*)\)\nmode = \"advise\"", shown)
    assert mode.endswith(f'"enforce"; {path}:3')
    assert shown.count("; default)\n") == sum(1 for _ in describe()) - 1
    assert parse_settings(shown) == read_settings(path)


@pytest.mark.parametrize("order", ["auto", "none", "start-now"])
def test_pbs_takes_starts_at_once_and_no_other_order(order: str) -> None:
    text = (
        '[scheduler]\nkind = "pbs"\n[hook]\nmode = "enforce"\nmechanism = "pbs-soft-walltime"\n'
        '[queue_order]\norder = "{}"\n'
    )
    assert parse_settings(text.format(order)).starts_jobs is (order == "start-now")
    with pytest.raises(InputError, match='on PBS there is "start-now" alone'):
        parse_settings(text.format("sjf"))
