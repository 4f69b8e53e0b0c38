"""What of a site is not modelled is named."""

from __future__ import annotations

import re
import shutil
from datetime import UTC
from pathlib import Path

import pytest
from foretime_sidecar.site_import.node_names import compressed
from foretime_sidecar.site_import.saved_output import read_folder
from foretime_sidecar.site_import.slurm_site import import_site
from foretime_sim.sites.slurm.site import SlurmSite


@pytest.fixture
def saved(repository: Path, tmp_path: Path) -> Path:
    ignored = shutil.ignore_patterns("*-lines.txt", "dump.txt")
    folder = repository / "tests/assets/slurm/26.05/site"
    return shutil.copytree(folder, tmp_path / "saved", ignore=ignored)


def imported(folder: Path) -> SlurmSite:
    return import_site(read_folder(folder), UTC).site


SETTINGS = {
    "TopologyPlugin          = topology/flat": (
        "TopologyPlugin = topology/block",
        "topology/block: nodes are chosen",
    ),
    "BurstBufferType         = (null)": (
        "BurstBufferType = burst_buffer/lua",
        "Burst buffers (burst_buffer/lua): no job waits for one.",
    ),
    "PreemptMode             = REQUEUE": (
        "PreemptMode = GANG,SUSPEND",
        "Gang scheduling (PreemptMode GANG)",
    ),
    "SelectType              = select/cons_tres": (
        "SelectType = select/linear",
        "select/linear: every job gets whole nodes",
    ),
    "SelectTypeParameters    = CR_CORE_MEMORY": (
        "SelectTypeParameters = CR_CORE_MEMORY,CR_LLN",
        "SelectTypeParameters CR_LLN: the least loaded nodes",
    ),
    "SuspendProgram          = (null)\nSuspendRate             = 60 nodes/min\n"
    "SuspendTime             = INFINITE": (
        "SuspendProgram = /bin/off\nSuspendTime = 600",
        "Power saving (SuspendProgram): nodes are always on",
    ),
    "PrioritySiteFactorPlugin = (null)": (
        "PrioritySiteFactorPlugin = site_factor/lua",
        "PrioritySiteFactorPlugin site_factor/lua",
    ),
    "PreemptParameters       = (null)": (
        "PreemptParameters = strict_order,oldest_first,min_exempt_priority=7",
        "PreemptParameters that are not modelled: strict_order.",
    ),
    "CompleteWait            = 4 sec": (
        "CompleteWait = 9 sec",
        "CompleteWait = 9: nodes complete at once, and none waits.",
    ),
    "bf_window=2880": ("bf_window=100000", "bf_window=100000 is out of range: Slurm's default"),
    "bf_interval=5": ("bf_interval=-1", "bf_interval=-1 switches the backfill loop off; here it"),
    "preempt_youngest_first": ("bf_busy_nodes", "not modelled: bf_busy_nodes, bf_hetjob_prio."),
}


@pytest.mark.parametrize("setting", SETTINGS)
def test_a_setting_is_named(saved: Path, setting: str) -> None:
    new, said = SETTINGS[setting]
    path = saved / "config.txt"
    text = path.read_text()
    assert setting in text
    path.write_text(text.replace(setting, new))
    assert said in "\n".join(imported(saved).not_modelled)


RECORDS = {
    ("partitions.txt", "AllowGroups=ALL"): ("AllowGroups=staff", "Partition main: AllowGroups=sta"),
    ("partitions.txt", "LLN=NO"): ("LLN=YES", "Partition main: LLN=YES."),
    ("partitions.txt", "OverSubscribe=NO"): (
        "OverSubscribe=FORCE:2",
        "Partition main: OverSubscribe=FORCE:2.",
    ),
    ("nodes.txt", "Gres=(null)"): ("Gres=shard:8", "GRES besides gpu (shard): there is always en"),
    ("nodes.txt", "ThreadsPerCore=1"): ("ThreadsPerCore=2", "Nodes have several threads a core"),
    ("nodes.txt", "State=ALLOCATED"): (
        "State=FUTURE",
        "Nodes in the state FUTURE are left out: b1",
    ),
    ("partitions.txt", "OverTimeLimit=10"): (
        "OverTimeLimit=UNLIMITED",
        "Partition gpu: OverTimeLimit=UNLIMITED: the cluster's counts.",
    ),
    ("partitions.txt", "Nodes=b1,n10"): (
        "Nodes=(null)",
        "Partitions without nodes are left out: w",
    ),
    ("partitions.txt", "Nodes=g[1-2]"): ("Nodes=g1", "Nodes in no partition are left out: g2."),
    ("qos.txt", "DenyOnLimit"): ("NoReserve,DenyOnLimit", "QOS high: NoReserve."),
    ("partitions.txt", "MaxMemPerCPU=4000"): (
        "MaxMemPerCPU=3000",
        "Partition main: MaxMemPerCPU=3000: jobs may ask for more memory here.",
    ),
    ("reservations.txt", "Flags=SPEC_NODES"): (
        "Flags=DAILY,SPEC_NODES",
        "Reservation course: DAILY.",
    ),
    ("reservations.txt", "Nodes=n[1-2]"): (
        "Nodes=n[1-2],z7",
        "Reservation course: its nodes z7 are not there.",
    ),
    ("qos.txt", "DenyOnLimit,OverPartQOS"): (
        "DenyOnLimit,Moon",
        "QOS high: flags that are not known: Moon.",
    ),
    ("users.txt", "dave|biology"): (
        "dave|alchemy",
        "Default accounts: that of dave is alchemy, where dave has no association.",
    ),
    ("partitions.txt", "AllowAccounts=physics,chemistry"): (
        "AllowAccounts=physics,gone",
        "Partition gpu: AllowAccounts names gone, which are not there.",
    ),
}


@pytest.mark.parametrize("record", RECORDS)
def test_what_a_record_has_is_named(saved: Path, record: tuple[str, str]) -> None:
    new, said = RECORDS[record]
    path = saved / record[0]
    text = path.read_text()
    assert record[1] in text
    path.write_text(text.replace(record[1], new, 1))
    assert said in "\n".join(imported(saved).not_modelled)


def change(saved: Path, name: str, old: str, new: str) -> None:
    path = saved / name
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))


def test_what_is_modelled_is_in_the_site_and_not_named(saved: Path) -> None:
    change(saved, "partitions.txt", "MinNodes=0", "MinNodes=4")
    change(saved, "qos.txt", "normal|0|00:00:00|||", "normal|0|00:00:00||1-01:00:00|")
    lines = (saved / "qos.txt").read_text().splitlines()
    factors = ["LimitFactor", "1.500000", *[""] * (len(lines) - 2)]
    with_factors = (f"{line}|{factor}\n" for line, factor in zip(lines, factors, strict=True))
    (saved / "qos.txt").write_text("".join(with_factors))
    parameters = "min_exempt_priority=500,Strict_Order"
    change(
        saved, "config.txt", "PreemptParameters       = (null)", f"PreemptParameters={parameters}"
    )
    change(saved, "config.txt", "PreemptExemptTime       = 00:", "PreemptExemptTime = 02:")
    site = imported(saved)
    normal = site.qos["normal"]
    assert site.rules["main"].min_nodes == 4
    assert (normal.limit_factor, normal.preempt_exempt_time_s) == (1.5, 90_000)
    assert (site.qos["high"].limit_factor, site.qos["high"].preempt_exempt_time_s) == (None, None)
    assert site.preempt_exempt_time_s == 7200
    words = ("min_exempt_priority=500", "strict_order", "youngest_first")
    assert site.preempt_parameters == words
    said = "\n".join(site.not_modelled)
    for word in ("MinNodes", "LimitFactor", "ExemptTime", "min_exempt"):
        assert word not in said


@pytest.mark.parametrize(
    ("line", "has_one"),
    [
        ("Epilog = (null)", False),
        ("Epilog = /etc/slurm/epilog", True),
        ("Epilog[0] = /etc/slurm/epilog", True),
        ("EpilogSlurmctld[0] = /etc/slurm/epilog", False),
        ("PrologFlags = Alloc,Contain", True),
        ("PrologFlags = Alloc", False),
    ],
)
def test_an_epilog_is_read(saved: Path, line: str, has_one: bool) -> None:
    change(saved, "config.txt", "PrologFlags             = (null)", line)
    assert imported(saved).parameters.epilog is has_one


def test_a_word_of_preemption_that_slurm_has_not_is_left_out_and_named(saved: Path) -> None:
    parameters = "PreemptParameters = oldest_first,min_exempt_priority=high"
    change(saved, "config.txt", "PreemptParameters       = (null)", parameters)
    site = imported(saved)
    assert site.preempt_parameters == ("youngest_first",)
    said = "\n".join(site.not_modelled)
    assert "PreemptParameters: oldest_first is unknown: give any of min_exempt_priority" in said
    assert "PreemptParameters: min_exempt_priority=high lacks its number" in said


def test_used_minutes_that_are_not_told_are_named(saved: Path) -> None:
    assert any(each.startswith("GrpTRESMins and GrpWall") for each in imported(saved).not_modelled)


def test_memory_of_the_cluster_counts_where_a_partition_has_none(saved: Path) -> None:
    path = saved / "config.txt"
    text = path.read_text()
    for name, value in {"DefMemPerNode": "500", "MaxMemPerNode": "7000"}.items():
        text = re.sub(rf"^{name} .*$", f"{name} = {value}", text, flags=re.MULTILINE)
    path.write_text(text)
    site = imported(saved)
    memory = {
        name: (site.rules_of(name).default_memory_per_node_mib,
               site.rules_of(name).max_memory_per_node_mib)
        for name in ("main", "gpu", "whole")
    }  # fmt: skip
    # main has both for a CPU, gpu the first for a node.
    assert memory == {"main": (0, 0), "gpu": (8000, 7000), "whole": (500, 7000)}


def test_words_without_effect_are_not_named(saved: Path) -> None:
    path = saved / "config.txt"
    path.write_text(path.read_text().replace("preempt_youngest_first", "max_script_size=99999"))
    said = "\n".join(imported(saved).not_modelled)
    assert "SchedulerParameters that are not modelled: bf_hetjob_prio." in said


CYCLES = """\
Main schedule statistics (microseconds):
	Total cycles: 100
	Mean depth cycle:  {main}

Main scheduler exit:
	Timeout (max_sched_time): {main_ended}

Backfilling stats
	Total cycles: 50
	Mean cycle: {mean_us}
	Depth Mean: {backfill}
{exits}
"""
EXITS = "Backfill exit\n\tTimeout (bf_max_time): {}\n"


@pytest.mark.parametrize(
    ("main_ended", "exits", "mean_us", "depths"),
    [
        (0, EXITS.format(0), 100, (1000, 1000)),
        (60, EXITS.format(0), 100, (40, 1000)),
        (0, EXITS.format(5), 100, (1000, 300)),
        (0, EXITS.format(4), 5_000_000, (1000, 1000)),
        # 22.05 tells no exits: a cycle that takes all of bf_max_time was cut short.
        (0, "", 4_900_000, (1000, 300)),
        (0, "", 3_000_000, (1000, 1000)),
    ],
)
def test_cycles_that_time_ends_look_as_deep_as_seen(
    saved: Path, main_ended: int, exits: str, mean_us: int, depths: tuple[int, int]
) -> None:
    text = CYCLES.format(main=40, main_ended=main_ended, mean_us=mean_us, backfill=300, exits=exits)
    (saved / "sdiag.txt").write_text(f"sdiag output at now\n{text}")
    site = imported(saved)
    parameters = site.parameters
    assert (parameters.default_queue_depth, parameters.bf_max_job_test) == depths
    said = [each for each in site.not_modelled if each.startswith("sdiag")]
    assert len(said) == sum(depth != 1000 for depth in depths)


@pytest.mark.parametrize(
    ("names", "written"),
    [
        (["n1"], "n1"),
        (["n2", "n1", "n3"], "n[1-3]"),
        (["n099", "n100", "n101"], "n[099-101]"),
        (["n9", "n10"], "n[9-10]"),
        (["login", "n1", "n3"], "login,n[1,3]"),
        (["r1n1", "r1n2", "r2n1"], "r1n[1-2],r2n1"),
    ],
)
def test_names_of_nodes_are_written_as_slurm_does(names: list[str], written: str) -> None:
    assert compressed(names) == written


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("bf_window=100,bf_window=200", "bf_window is there twice: the first counts."),
        ("bf_window=10days", "bf_window=10days: Slurm reads 10."),
        ("bf_continue=no", "bf_continue=no: Slurm takes it as set."),
        ("max_sched_time=4", "SchedulerParameters max_sched_time: loops take no time;"),
        ("=5", "SchedulerParameters that are not modelled: =5."),
    ],
)
def test_odd_words_of_scheduler_parameters_are_named(saved: Path, words: str, said: str) -> None:
    path = saved / "config.txt"
    text = re.sub(
        r"^SchedulerParameters .*$", f"SchedulerParameters = {words}", path.read_text(), flags=re.M
    )
    path.write_text(text)
    assert said in "\n".join(imported(saved).not_modelled)


def test_of_a_word_that_is_there_twice_slurm_takes_the_first(saved: Path) -> None:
    path = saved / "config.txt"
    words = "SchedulerParameters = bf_window=100,bf_window=200"
    path.write_text(re.sub(r"^SchedulerParameters .*$", words, path.read_text(), flags=re.M))
    assert imported(saved).parameters.bf_window == 6000


def test_files_that_were_not_read_are_named(saved: Path) -> None:
    (saved / "gres.conf").write_text("AutoDetect=nvml\n")
    assert "Files that were not read: gres.conf." in imported(saved).not_modelled


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("AccountingStorageEnforce", "limits,limts", "AccountingStorageEnforce: not known: limts."),
        ("SelectType", "select/moon", "SelectType is select/moon: taken as select/cons_tres."),
        ("SelectTypeParameters", "CR_MOON", "SelectTypeParameters CR_MOON is not known."),
    ],
)
def test_odd_settings_are_named(saved: Path, name: str, value: str, said: str) -> None:
    path = saved / "config.txt"
    path.write_text(re.sub(rf"^{name} .*$", f"{name} = {value}", path.read_text(), flags=re.M))
    assert said in imported(saved).not_modelled
