from __future__ import annotations

from dataclasses import fields as dataclass_fields
from dataclasses import replace
from pathlib import Path

import pytest
from foretime_estimators.jobs.errors import InputError, StateError
from foretime_sidecar.table.table import (
    Advice,
    Longest,
    Mechanism,
    Mode,
    Reservation,
    Table,
    TableRow,
    TableSettings,
    decode_name,
    encode_name,
    parse_table,
    read_table,
    table_bytes,
    write_table,
)
from hypothesis import given
from hypothesis import strategies as st

TABLE = Table(
    generation=7,
    written_at=1_000,
    valid_until=100_000,
    settings=TableSettings(
        mode=Mode.ENFORCE,
        enforce_share_percent=25,
        mechanism=Mechanism.REWRITE_LIMIT,
        requested_time_bounds_s=(3600, 7200),
    ),
    left_alone=frozenset(
        {
            ("user", "root user"),
            ("user", "backup"),
            ("account", "Phys"),
            ("slurm_partition", "long"),
            ("qos", "a|b"),
            ("queue", "night q"),
        }
    ),
    longest=(Longest("account", "a b", 7), Longest("any", None, 9), Longest("qos", "q", 0)),
    enforced_only=frozenset({("account", "a b"), ("slurm_partition", "main"), ("queue", "q")}),
    advice=Advice(9, (("a b", 8),), ((0, 5), (2, 6))),
    unplanned_since=4,
    reservations=(Reservation(5, 6), Reservation(7, 8, ("a,b", "c"))),
    rows=(TableRow("project", "phys", 2, 1_000_000), TableRow("user", "zoë\n#1 ", 0, 1, 9)),
)


def test_written_table_is_read_back(tmp_path: Path) -> None:
    path = tmp_path / "table"
    write_table(path, replace(TABLE, generation=6))
    write_table(path, TABLE)
    assert read_table(path) == TABLE
    assert [entry.name for entry in tmp_path.iterdir()] == ["table"]


WRITTEN = """\
foretime-table 1 generation=7 length=000000795 head=000000662 written=1000 valid=100000 buckets=1
mode enforce
enforce_share_percent 25
scheme combined
mechanism rewrite-limit
user_time_min raise
minimum_adjustment 0.100000
minimum_scheduled_time_s 600
rounding_s 60
requested_time_bounds_s 3600,7200
leave user backup
leave user root%20user
leave account Phys
leave slurm_partition long
leave qos a%7Cb
leave queue night%20q
longest account a%20b 7
longest any * 9
longest qos q 0
only account a%20b
only slurm_partition main
only queue q
told_until 9
told a%20b 8
median_wait_s 0 5
median_wait_s 2 6
unplanned_since 4
reservation 5 6 *
reservation 7 8 a%2Cb,c
check 0063931582
#000000 3096136816
project phys 2 1.000000 -
user zo%C3%AB%0A%231%20 0 0.000001 9
end generation=7 length=000000795
"""


def test_what_is_written_byte_for_byte() -> None:
    assert table_bytes(TABLE).decode() == WRITTEN


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1))
def test_any_name_survives(name: str) -> None:
    encoded = encode_name(name)
    assert decode_name(encoded) == name
    assert not set(encoded) & set(" \n#|,*")


def test_every_cut_and_every_changed_byte_is_noticed() -> None:
    content = table_bytes(TABLE)
    for at in range(len(content)):
        with pytest.raises(StateError):
            parse_table(content[:at])
        with pytest.raises(StateError):
            parse_table(content[:at] + bytes((content[at] ^ 1,)) + content[at + 1 :])


@pytest.mark.parametrize(
    ("table", "what"),
    [
        (replace(TABLE, rows=(TableRow("user", "", 0, 1),)), "name is empty"),
        (replace(TABLE, rows=(TableRow("user", "a", 3, 1),)), "3 classes"),
        (replace(TABLE, rows=(TableRow("user", "a", 0, 1_000_001),)), "millionths"),
        (replace(TABLE, rows=(TableRow("user", "a", 0, 1),) * 2), "another such row"),
        (replace(TABLE, settings=TableSettings(rounding_s=0)), "rounding_s"),
        (replace(TABLE, settings=TableSettings(enforce_share_percent=101)), "enforce_share"),
        (replace(TABLE, settings=TableSettings(requested_time_bounds_s=(2, 1))), "ascend"),
        (replace(TABLE, advice=Advice(-1)), "epoch seconds"),
        (replace(TABLE, unplanned_since=-1), "unplanned_since is -1"),
        (replace(TABLE, advice=Advice(1, (("a", 1), ("a", 2)))), "told twice"),
        (replace(TABLE, advice=Advice(median_wait_s=((3, 1),))), "3, counted from 0"),
        (replace(TABLE, advice=Advice(median_wait_s=((1, 1), (1, 2)))), "3, counted from 0"),
        (replace(TABLE, advice=Advice(median_wait_s=((1, -1),))), "whole number of seconds"),
        (replace(TABLE, reservations=(Reservation(2, 1),)), "end after"),
        (replace(TABLE, left_alone=frozenset({("group", "a")})), "kind 'group'"),
        (replace(TABLE, longest=(Longest("group", "a", 1),)), "kind 'group'"),
        (replace(TABLE, enforced_only=frozenset({("user", "a")})), "limited to the user 'a'"),
        (replace(TABLE, longest=(Longest("any", "a", 1),)), "no name"),
        (replace(TABLE, longest=(Longest("user", None, 1),)), "no name"),
        (replace(TABLE, longest=(Longest("user", "a", -1),)), "from 0"),
    ],
)
def test_what_cannot_be_written_is_named(table: Table, what: str) -> None:
    with pytest.raises(InputError, match=what):
        table_bytes(table)


def test_missing_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(StateError, match="can't write the table"):
        write_table(tmp_path / "none" / "table", TABLE)


def test_the_documented_table_is_valid(repository: Path) -> None:
    document = (repository / "plugin" / "TABLE.md").read_text()
    example = document.split("```\n")[1]
    table = parse_table(example.encode())
    assert (table.generation, len(table.rows)) == (7, 2)
    for setting in dataclass_fields(TableSettings):
        assert f"`{setting.name}`" in document
