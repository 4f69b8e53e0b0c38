"""A site's file: written and read again, its faults by name, contradictions refused."""

from __future__ import annotations

import pickle
import re
from collections.abc import Iterable
from pathlib import Path

import pytest
from foretime_estimators.jobs.errors import InputError
from foretime_sim.files.toml_keys import Key
from foretime_sim.machines.machine import Machine, SlurmPartition
from foretime_sim.sites.site_file import format_site, parse_site, read_site
from foretime_sim.sites.slurm import site_tables
from foretime_sim.sites.slurm.limits import Association, Limits, Qos
from foretime_sim.sites.slurm.parameters import SlurmParameters
from foretime_sim.sites.slurm.priority import SlurmPriority
from foretime_sim.sites.slurm.scheduler_words import KEYS as WORDS
from foretime_sim.sites.slurm.site import PartitionRules, SlurmSite
from foretime_sim.sites.slurm.switches import Switch
from foretime_sim.sites.slurm.uncounted import notes_on
from hypothesis import given

from tests.support.slurm.slurm_sites import attributes, sites

SMALL = """
[node_groups.cpu]
nodes = 4
cpus = 8
[partitions.main]
node_groups = ["cpu"]
"""


def site_of(more: str, first: str = "") -> SlurmSite:
    site = parse_site(f"{first}\n{SMALL}\n{more}", source="site.toml")
    assert isinstance(site, SlurmSite)
    return site


@given(site=sites())
def test_written_and_read_again(site: SlurmSite) -> None:
    assert parse_site(format_site(site), source="made.toml") == site


@given(site=sites())
def test_the_text_is_the_same_every_time(site: SlurmSite) -> None:
    text = format_site(site)
    assert format_site(parse_site(text, source="made.toml")) == text


def test_it_can_be_given_to_other_processes() -> None:
    site = site_of("[qos.normal]\nPriority = 5")
    assert pickle.loads(pickle.dumps(site)) == site


def test_what_is_left_out_has_the_defaults() -> None:
    site = site_of("")
    assert site == SlurmSite(site.machine)
    assert (site.machine.cpus, site.machine.slurm_partitions[0].name) == (32, "main")


def test_every_attribute_can_be_said() -> None:
    def said(*keys: dict[str, Key]) -> set[str]:
        return {key.attribute for table in keys for key in table.values()}

    assert said(WORDS, site_tables.TIMING_KEYS) == attributes(SlurmParameters)
    assert said(site_tables.PRIORITY_KEYS) == attributes(SlurmPriority)
    assert said(site_tables.RULES_KEYS) == attributes(PartitionRules)
    assert said(site_tables.PARTITION_WORDS) == attributes(SlurmPartition) - {"name"}
    assert said(site_tables.QOS_KEYS) == attributes(Qos) - {"name", "limits"}
    users = attributes(Association) - {"limits"}
    assert said(site_tables.USER_KEYS) == users - {"parent"}
    assert said(site_tables.ACCOUNT_KEYS) < users
    limits = said(site_tables.QOS_LIMITS) | said(site_tables.ASSOCIATION_LIMITS)
    assert limits == attributes(Limits)
    assert said(site_tables.SWITCH_KEYS) == attributes(Switch) - {"name"}
    tables = {"machine", "parameters", "priority", "rules", "qos", "associations", "reservations"}
    tables |= {"switches"}
    rest = said(site_tables.FIRST_KEYS, site_tables.CONF_KEYS) | {"licenses", "not_modelled"}
    assert rest | tables == attributes(SlurmSite)


def test_units_are_slurms() -> None:
    site = site_of(
        "[slurm]\nOverTimeLimit = 5\nKillWait = 20\n"
        "[slurm.SchedulerParameters]\nbf_window = 1440\nbf_interval = 45\n"
        '[qos.short]\nMaxTRESPerUser = "cpu=512,mem=2T"\nMaxWall = "4:00:00"\n'
        '[priority]\nPriorityWeightTRES = "CPU=10,Mem=0.5G"\n'
    )
    assert (site.parameters.over_time_limit_s, site.parameters.kill_wait_s) == (300, 20)
    assert site.parameters.bf_window == 86_400
    # Slurm gives the loop as long as there is between two of them (backfill.c).
    assert (site.parameters.bf_interval, site.parameters.bf_max_time) == (45, 45)
    limits = site.qos["short"].limits
    assert limits.max_tres_per_user == {"cpu": 512, "mem": 2 * 1024**2}
    assert limits.max_wall_s == 14_400
    assert site.priority.weight_tres == {"cpu": 10.0, "mem": 0.5 / 1024}


def test_what_is_used_so_far_is_in_seconds() -> None:
    site = site_of(
        '[qos.short]\nRawTRES = "cpu=90.5,mem=2G"\nRawWall = 0.5\nLimitFactor = 2\n'
        'PreemptExemptTime = "1:00:00"\n'
        '[accounts.root]\nRawTRES = "gres/gpu=7"\nRawWall = 3\n'
    )
    short, root = site.qos["short"], site.associations[0]
    assert (short.used_tres_s, short.used_wall_s) == ({"cpu": 90.5, "mem": 2048.0}, 0.5)
    assert (short.limit_factor, short.preempt_exempt_time_s) == (2.0, 3600)
    assert (root.used_tres_s, root.used_wall_s) == ({"gres/gpu": 7.0}, 3.0)


def test_limits_stand_for_associations_as_in_slurm() -> None:
    site = site_of('[slurm]\nAccountingStorageEnforce = ["safe"]')
    assert site.enforced == {"associations", "limits", "safe"}


def test_tres_that_no_job_has_are_named() -> None:
    site = site_of(
        '[licenses]\nmatlab = 2\n[qos.short]\nMaxTRESPerUser = "cpu=8,gres/fpga=2"\n'
        'GrpTRES = "gres/fpga=4,license/matlab=1"\n[accounts.root]\nGrpTRES = "gres/fpga=9"\n'
        '[priority]\nPriorityWeightTRES = "energy=3"\n'
    )
    assert notes_on(site) == (
        "energy is not counted, as no job here has any: PriorityWeightTRES.",
        "gres/fpga is not counted, as no job here has any: [qos.short] and 1 more.",
    )


def test_words_of_preemption_are_in_lower_case() -> None:
    site = site_of('[slurm]\nEpilog = true\nPreemptParameters = ["Min_Exempt_Priority=5"]')
    assert site.preempt_parameters == ("min_exempt_priority=5",)
    assert site.parameters.epilog


def test_keys_of_a_machines_file_are_read_as_well() -> None:
    text = SMALL + 'priority_tier = 3\nmax_time = "1:00:00"\n'
    partition = parse_site(text, source="x").machine.slurm_partitions[0]
    assert (partition.priority_tier, partition.max_time_s) == (3, 3600)


ACCOUNTS = "[accounts.root]\n[accounts.physics]\n"
FAULTS = {
    "unknown table": ("[slrum]", "'slrum' is unknown; did you mean 'slurm'"),
    "unknown key": ("[priority]\nPriorityWeigthAge = 1", "[priority]: 'PriorityWeigthAge' is unk"),
    "unknown word": ("[slurm.SchedulerParameters]\nbf_windw = 1", "did you mean 'bf_window'"),
    "not a number": ('[priority]\nPriorityWeightAge = "much"', "PriorityWeightAge is 'much': give"),
    "below 0": ("[priority]\nPriorityWeightQOS = -1", "PriorityWeightQOS is -1: give 0 to 4,29"),
    "no weights": ('[priority]\nPriorityWeightTRES = "cpu=x"', "is 'cpu=x': 'cpu=x' is no kind"),
    "not finite": ("[accounts.root]\nRawUsage = inf", "[accounts.root]: RawUsage is inf: give a"),
    "out of range": ("[slurm.SchedulerParameters]\nbf_window = 0", "bf_window is 0: give 1 to 43"),
    "a word with a number": ("[slurm.SchedulerParameters]\nbf_continue = 1", "give true or false"),
    "bare number as time": ('[qos.a]\nMaxWall = "60"', "[qos.a]: MaxWall is '60': give a time as"),
    "half a MiB": ('[qos.a]\nGrpTRES = "mem=1K"', "mem=1K: give whole MiB"),
    "kind twice": ('[qos.a]\nGrpTRES = "cpu=1,cpu=2"', "cpu is there twice"),
    "unit of CPUs": ('[qos.a]\nGrpTRES = "cpu=1G"', "G is no unit of cpu"),
    "a weight that Slurm has no room for": (
        "[priority]\nPriorityWeightAge = 4294967296",
        "PriorityWeightAge is 4294967296: give 0 to 4,294,967,295",
    ),
    "no period": (
        '[priority]\nPriorityCalcPeriod = "0:00"',
        "[priority]: PriorityCalcPeriod is '0:00': give a time above 0",
    ),
    "a flag of a QOS": ('[qos.a]\nFlags = ["Moon"]', "[qos.a]: Flags is ['Moon']: Moon is unknown"),
    "DefaultTime": (
        'MaxTime = "1:00:00"\nDefaultTime = "2:00:00"',
        "[partitions.main]: DefaultTime is longer than MaxTime: shorten it",
    ),
    "memory twice": (
        "DefMemPerCPU = 5\nDefMemPerNode = 7",
        "[partitions.main]: it has DefMemPerCPU and DefMemPerNode: give one of them",
    ),
    "no user": (
        ACCOUNTS + '[[associations]]\nUser = ""\nAccount = "root"',
        "Account root: User is empty: name a user",
    ),
    "account without name": (
        '[accounts.root]\n[accounts.""]',
        "the account has no name: give it one",
    ),
    "QOS of a QOS": ('[qos.a]\nPreempt = ["b"]', "[qos.a]: Preempt: there is no QOS 'b'"),
    "QOS of a partition": ('QOS = "short"', "[partitions.main]: QOS: there is no QOS 'short'"),
    "denied account": (
        'DenyAccounts = ["chem"]\n' + ACCOUNTS,
        "[partitions.main]: DenyAccounts: there is no account 'chem'",
    ),
    "account of a user": (
        ACCOUNTS + '[[associations]]\nUser = "ann"\nAccount = "phys"',
        "[[associations]] of User ann, Account phys: Account: there is no account 'phys'; did you",
    ),
    "user without account": ('[[associations]]\nUser = "ann"', "number 1: Account is missing"),
    "partition of a user": (
        ACCOUNTS + '[[associations]]\nUser = "ann"\nAccount = "physics"\nPartition = "x"',
        "Partition: there is no partition 'x'",
    ),
    "default QOS": (
        '[qos.a]\n[accounts.root]\nDefaultQOS = "a"',
        "[accounts.root]: DefaultQOS is 'a', which is not in QOS: add it",
    ),
    "parent": (ACCOUNTS + 'Parent = "x"', "[accounts.physics]: Parent: there is no account 'x'"),
    "no root": ("[accounts.physics]", "Parent: there is no account 'root'"),
    "circle": (
        '[accounts.root]\n[accounts.a]\nParent = "b"\n[accounts.b]\nParent = "a"',
        "[accounts.a]: Parent: a -> b -> a is a circle",
    ),
    "root with a parent": ('[accounts.root]\nParent = "root"', "all but root have a parent"),
    "user twice": (
        ACCOUNTS + '[[associations]]\nUser = "a"\nAccount = "root"\n' * 2,
        "User a, Account root: the association is there twice",
    ),
    "two default accounts": (
        ACCOUNTS
        + '[[associations]]\nUser = "a"\nAccount = "root"\nDefault = true\n'
        + '[[associations]]\nUser = "a"\nAccount = "physics"\nDefault = true\n',
        "root is the default account of a, too: mark one",
    ),
    "no text as user": (
        ACCOUNTS + '[[associations]]\nUser = 1000\nAccount = "root"',
        "User is 1000: give a text",
    ),
    "reservation": (
        '[reservations.r]\nstart = 2026-11-22T22:00:00Z\nduration = "1:00:00"\nnode_groups = ["g"]',
        "[reservations.r]: node_groups: there is no group 'g'",
    ),
    "reservation without zone": (
        '[reservations.r]\nstart = 2026-11-22T22:00:00\nduration = "1:00"\nnode_groups = ["cpu"]',
        "give whole seconds and the zone",
    ),
    "switch of a group": (
        '[switches.leaf]\nnode_groups = ["cpus"]',
        "[switches.leaf]: node_groups: there is no group 'cpus'; did you mean 'cpu'",
    ),
    "switch below": (
        '[switches.leaf]\n[switches.top]\nSwitches = ["laef"]',
        "[switches.top]: Switches: there is no switch 'laef'; did you mean 'leaf'",
    ),
    "switch with both": (
        '[switches.a]\n[switches.b]\nSwitches = ["a"]\nnode_groups = ["cpu"]',
        "[switches.b]: it has node_groups and Switches: give it one of them",
    ),
    "switches in a circle": (
        '[switches.c]\n[switches.a]\nSwitches = ["b"]\n[switches.b]\nSwitches = ["a", "c"]',
        "[switches.a]: Switches: a, b go in a circle: a switch must not be below itself",
    ),
    "key of a switch": ('[switches.a]\nNodes = "n[1-4]"', "[switches.a]: 'Nodes' is unknown"),
    "licenses": ("[licenses]\nmatlab = -1", "[licenses]: matlab is -1: give 0 or more"),
    "both spellings": ("PriorityTier = 2\npriority_tier = 2", "say the same: give one"),
    "preemption": ('[slurm]\nPreemptMode = "KILL"', "[slurm]: PreemptMode is 'KILL': give any of"),
    "preempting": (
        '[slurm]\nPreemptParameters = ["oldest_first"]',
        "oldest_first is unknown: give any of min_exempt_priority,",
    ),
    "no number": ('[slurm]\nPreemptParameters = ["reorder_count"]', "lacks its number: write"),
    "a number": ('[slurm]\nPreemptParameters = ["strict_order=1"]', "strict_order takes no number"),
    "used": ('[qos.a]\nRawTRES = "cpu=-1"', "[qos.a]: RawTRES is 'cpu=-1': cpu=-1: give a number"),
    "unit of what is used": ('[qos.a]\nRawTRES = "cpu=1G"', "G is no unit of cpu"),
    "limit factor": ("[qos.a]\nLimitFactor = -1", "LimitFactor is -1: give a number of 0 or more"),
    "enforced": ('[slurm]\nAccountingStorageEnforce = ["all"]', "all is unknown: give any of"),
    "partition of nothing": ("[partitions.empty]", "[partitions.empty]: node_groups is missing"),
    "no such group": ('[partitions.x]\nnode_groups = ["gpu"]', "there is no group 'gpu'"),
    "tables of users": ("[associations]", "associations is {}: make it tables [[associations]]"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_named(fault: str) -> None:
    text, said = FAULTS[fault]
    with pytest.raises(InputError, match=re.escape(said)) as error:
        site_of(text)
    assert str(error.value).startswith("site.toml: ")


def test_a_version_that_is_none_is_refused() -> None:
    with pytest.raises(InputError, match=r"above the tables: version is '26': give the release"):
        site_of("", 'version = "26"')


@pytest.mark.parametrize(
    ("site", "said"),
    [
        (SlurmSite(Machine.flat(4), parameters=SlurmParameters(bf_window=90)), "90 s are no whole"),
    ],
)
def test_what_no_file_can_say_is_refused(site: SlurmSite, said: str) -> None:
    with pytest.raises(InputError, match=said):
        format_site(site)


def test_accounts_come_before_users_however_they_are_given() -> None:
    associations = (
        Association("root"),
        Association("root", user="ann"),
        Association("physics", parent="root"),
        Association("physics", user="bob"),
    )
    site = SlurmSite(Machine.flat(4), associations=associations)
    assert [each.user for each in site.associations] == [None, None, "ann", "bob"]
    assert parse_site(format_site(site), source="made.toml") == site


def test_a_file_is_named_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"site\.toml: there is no such file"):
        read_site(tmp_path / "site.toml")


def test_remarks_stand_once() -> None:
    text = format_site(site_of('[partitions.other]\nnode_groups = ["cpu"]\n[qos.a]\n[qos.b]'))
    remarks: Iterable[str] = [line for line in text.splitlines() if line.startswith("# ")]
    assert len(list(remarks)) == len(set(remarks))
    assert "# QOS: priority, and limits" in text
    assert "# Accounts" not in text
