"""The file of a site under PBS: written and read again, its faults by name."""

from __future__ import annotations

import pickle
import random
import re

import pytest
from foretime_estimators.jobs.errors import InputError
from foretime_sim.files.toml_keys import Key
from foretime_sim.sites.pbs import tables as pbs_tables
from foretime_sim.sites.pbs.limits import PbsLimits
from foretime_sim.sites.pbs.scheduler import PbsScheduler
from foretime_sim.sites.pbs.site import (
    PbsHost,
    PbsQueue,
    PbsReservation,
    PbsServer,
    PbsSite,
    ShareGroup,
)
from foretime_sim.sites.site_file import format_site, parse_site
from hypothesis import given

from tests.support.pbs.random_pbs_sites import pbs_sites
from tests.support.slurm.slurm_sites import attributes

SMALL = """
[queues.workq]
[[hosts]]
name = "n1"
last = "n3"
resources_available.ncpus = 8
"""


def site_of(more: str, first: str = "", small: str = SMALL) -> PbsSite:
    site = parse_site(f'scheduler = "pbs"\n{first}\n{small}\n{more}', source="site.toml")
    assert isinstance(site, PbsSite)
    return site


@given(site=pbs_sites())
def test_written_and_read_again(site: PbsSite) -> None:
    text = format_site(site)
    assert parse_site(text, source="made.toml") == site
    assert format_site(parse_site(text, source="made.toml")) == text


def test_what_is_left_out_has_the_defaults() -> None:
    hosts = tuple(PbsHost(f"n{number}", {"ncpus": 8}) for number in (1, 2, 3))
    site = PbsSite(hosts, (PbsQueue("workq"),))
    assert site_of("") == site
    assert pickle.loads(pickle.dumps(site)) == site


def test_every_attribute_can_be_said() -> None:
    def said(*keys: dict[str, Key]) -> set[str]:
        return {key.attribute for table in keys for key in table.values()}

    assert said(pbs_tables.LIMIT_KEYS) == attributes(PbsLimits)
    assert said(pbs_tables.SERVER_KEYS) == attributes(PbsServer) - {"limits"}
    assert said(pbs_tables.QUEUE_KEYS) == attributes(PbsQueue) - {"name", "limits"}
    assert said(pbs_tables.HOST_KEYS) == attributes(PbsHost) - {"name"}
    scheduler = said(pbs_tables.SCHED_CONFIG_KEYS, pbs_tables.SCHED_KEYS)
    assert scheduler == attributes(PbsScheduler)
    assert said(pbs_tables.GROUP_KEYS) == attributes(ShareGroup) - {"name"}
    assert said(pbs_tables.RESERVATION_KEYS) == attributes(PbsReservation) - {"name"}
    tables = {"hosts", "queues", "server", "scheduler", "share_groups", "reservations"}
    assert said(pbs_tables.FIRST_KEYS) | tables | {"not_modelled"} == attributes(PbsSite)


def test_words_and_units_are_pbs_own() -> None:
    site = site_of(
        '[server]\nmax_run = "[u:PBS_GENERIC=5],[g:physics=20]"\n'
        'max_run_res.mem = "[o:PBS_ALL=1tb]"\nresources_default = { walltime = "02:00:00" }\n'
        '[sched_config]\njob_sort_key = ["ncpus HIGH"]\nfairshare_decay_time = "24:00:00"\n'
        '[sched]\nopt_backfill_fuzzy = "med"\n'
        '[resource_group]\nstaff = { shares = 40 }\nann = { parent = "staff", usage = 7.5 }\n'
    )
    limits = site.server.limits
    assert limits.max_run == {"u:PBS_GENERIC": 5, "g:physics": 20}
    assert limits.max_run_res == {"mem": {"o:PBS_ALL": 2**40}}
    assert site.server.resources_default == {"walltime": 7200}
    assert site.scheduler.job_sort_key == (("ncpus", True),)
    assert site.scheduler.fairshare_decay_time_s == 86_400
    assert site.scheduler.opt_backfill_fuzzy_s == 600
    assert site.share_groups[1] == ShareGroup("ann", "staff", usage=7.5)
    text = format_site(site)
    for line in (
        'max_run = "[u:PBS_GENERIC=5],[g:physics=20]"',
        'max_run_res = { mem = "[o:PBS_ALL=1tb]" }',
        'resources_default = { walltime = "02:00:00" }',
        'opt_backfill_fuzzy = "med"',
        'ann = { shares = 1, parent = "staff", usage = 7.5 }',
    ):
        assert f"\n{line}\n" in text


def test_a_thousand_alike_hosts_are_one_table() -> None:
    def hosts(mem: int) -> list[PbsHost]:
        names = [f"n{number:04}" for number in range(1, 1001)]
        return [PbsHost(name, {"ncpus": 8, "mem": mem}) for name in names]

    alike = hosts(2**30)
    text = format_site(PbsSite(tuple(alike), (PbsQueue("workq"),)))
    assert text.count("[[hosts]]") == 1
    assert (
        'name = "n0001"\nlast = "n1000"\nresources_available = { ncpus = 8, mem = "1gb" }' in text
    )
    alike[499:501] = hosts(2**31)[499:501]
    text = format_site(PbsSite(tuple(alike), (PbsQueue("workq"),)))
    assert text.count("[[hosts]]") == 3
    assert PbsSite(tuple(alike), (PbsQueue("workq"),)).machine.nodes == 1000


HOST = '[[hosts]]\nname = "{}"\n'
FAULTS = {
    "unknown table": ("[sched_confg]", "'sched_confg' is unknown; did you mean 'sched_config'"),
    "unknown key": ("[server]\nbackfil_depth = 1", "[server]: 'backfil_depth' is unknown; did you"),
    "unknown option": ("[sched_config]\nstrict_order = true", "did you mean 'strict_ordering'"),
    "no yes": (
        '[sched_config]\nby_queue = "True"',
        "[sched_config]: by_queue is 'True': give tr",
    ),
    "no amount": (
        '[server]\nresources_max.mem = "16 GiB"',
        "[server]: resources_max is {'mem': '16 GiB'}: mem: '16 GiB' is no amount: give a number,",
    ),
    "below 0": ("[server]\nresources_max.ncpus = -1", "ncpus: give 0 or more"),
    "no limit": (
        '[queues.q]\nmax_run = "[x:all=5]"',
        "[queues.q]: max_run is '[x:all=5]': '[x:all=5]' is no limit: give such as [u:PBS_GENERIC",
    ),
    "somebody twice": ('[queues.q]\nmax_run = "[u:a=5],[u:a=6]"', "u:a is there twice: give it"),
    "no time": ("[sched_config]\nprime_spill = 60", "prime_spill is 60: give a time as text, HH:"),
    "no sort key": ('[sched_config]\njob_sort_key = ["ncpus"]', "give a resource and HIGH or LOW"),
    "no factor": ("[sched_config]\nfairshare_decay_factor = 2", "is 2: give 0 to 1"),
    "no fuzziness": ('[sched]\nopt_backfill_fuzzy = "lo"', "give one of off, low, med, high, or s"),
    "no iteration": (
        "[server]\nscheduler_iteration = 0",
        "scheduler_iteration is 0: give 1 or",
    ),
    "no threshold": ("[server]\njob_sort_formula_threshold = nan", "give a number"),
    "no queue by default": (
        '[server]\ndefault_queue = "wrokq"',
        "[server]: default_queue: there is no queue 'wrokq'; did you mean 'workq'",
    ),
    "host of a queue": (
        HOST.format("n9") + 'queue = "wrkq"',
        "[[hosts]] n9: queue: there is no queue 'wrkq'; did you mean 'workq'",
    ),
    "host twice": (HOST.format("n3"), "[[hosts]]: the host 'n3' is there twice: leave one of them"),
    "host without name": ("[[hosts]]\nPriority = 5", "[[hosts]] number 2: name is missing"),
    "names that don't count": (
        HOST.format("a1") + 'last = "b2"',
        "[[hosts]] number 2: last is 'b2': a1 and b2 must differ in one number alone",
    ),
    "names backwards": (HOST.format("a2") + 'last = "a1"', "give a name after a2"),
    "names not alike": (HOST.format("a01") + 'last = "a3"', "a3 is not numbered as a01 is: a03"),
    "far too many": (HOST.format("a1") + 'last = "a99999999"', "at most 1,000,000"),
    "labels": (HOST.format("a") + "labels = { gpu = 4 }", "labels is {'gpu': 4}: gpu: give a text"),
    "parent": (
        '[resource_group]\na = { parent = "b" }',
        "[resource_group.a]: parent: there is no",
    ),
    "circle": (
        '[resource_group]\na = { parent = "b" }\nb = { parent = "a" }',
        "[resource_group.a]: parent: a -> b -> a is a circle",
    ),
    "group of PBS": (
        "[resource_group]\nunknown = {}",
        "PBS has this group by itself: leave it",
    ),
    "group": (
        "[resource_group]\na = 5",
        "resource_group.a is 5: make it a table [resour",
    ),
    "reservation of nothing": (
        "[reservations.R1]\nstart = 1\nend = 2\nhosts.n9.ncpus = 1",
        "[reservations.R1]: hosts: there is no host 'n9'",
    ),
    "reservation backwards": (
        "[reservations.R1]\nstart = 2\nend = 2\nhosts.n1.ncpus = 1",
        "[reservations.R1]: its end is not after its start",
    ),
    "reservation without hosts": ("[reservations.R1]\nstart = 2\nend = 3", "hosts is missing"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_named(fault: str) -> None:
    text, said = FAULTS[fault]
    with pytest.raises(InputError, match=re.escape(said)) as error:
        site_of(text)
    assert str(error.value).startswith("site.toml: ")


@pytest.mark.parametrize(
    ("first", "small", "said"),
    [
        ("", "[queues.workq]\n", "at least one host and one execution queue"),
        ("", '[[hosts]]\nname = "n1"\n', "at least one host and one execution queue"),
        ("", '[queues.workq]\n[[hosts]]\nname = "n1"\n', "no queue has a host with ncpus"),
        ("hosts = 5", "[queues.workq]\n", "hosts is 5: make it tables [[hosts]]"),
        ("dedicated_time = [[2, 1]]", SMALL, "the end 1 is not after the start 2"),
        ("dedicated_time = [5]", SMALL, "give a list of spans, like [[2026-"),
        ("version = 23", SMALL, "above the tables: version is 23: give a text"),
    ],
)
def test_a_fault_of_the_whole_is_named(first: str, small: str, said: str) -> None:
    with pytest.raises(InputError, match=re.escape(said)):
        site_of("", first, small)


def test_a_file_that_does_not_name_pbs_is_told_to() -> None:
    with pytest.raises(InputError, match='begins with scheduler = "pbs"'):
        parse_site(SMALL, source="site.toml")
    with pytest.raises(InputError, match="scheduler is 'torque': give slurm or pbs"):
        parse_site('scheduler = "torque"\n' + SMALL, source="site.toml")


def test_a_limit_of_nobody_cant_be_written() -> None:
    site = PbsSite(
        (PbsHost("n1", {"ncpus": 1}),),
        (PbsQueue("workq", limits=PbsLimits(max_run={"alice": 5})),),
    )
    with pytest.raises(InputError, match="can't be written: 'alice' is nobody: give u:NAME"):
        format_site(site)


def damaged(text: str, chance: random.Random) -> str:
    """Cut a text off, change, move or double a line, or change a character of it."""
    lines = text.splitlines(keepends=True)
    at, other = chance.randrange(len(lines)), chance.randrange(len(lines))
    place = chance.randrange(len(text))
    kind = chance.randrange(6)
    if kind == 0:
        return text[:place]
    if kind == 1:
        return "".join(lines[:at] + lines[at + 1 :])
    if kind == 2:
        return "".join([*lines[:at], lines[other], *lines[at:]])
    if kind == 3:
        return text[:place] + chance.choice('"[]{}=.,#-0 9axn\n\\') + text[place + 1 :]
    if kind == 4:
        return text[:place] + text[place + chance.randrange(1, 40) :]
    lines[at], lines[other] = lines[other], lines[at]
    return "".join(lines)


@pytest.mark.parametrize("part", range(4))
def test_of_a_damaged_file_there_is_a_message_or_it_is_written_as_it_was_read(part: int) -> None:
    text = format_site(
        site_of(
            '[server]\nmax_run = "[u:PBS_GENERIC=5]"\njob_sort_formula = "10 * ncpus"\n'
            "[sched_config]\nfair_share = true\n[sched]\npreempt_queue_prio = 90\n"
            '[queues.short]\nPriority = 20\nresources_max.walltime = "01:00:00"\n'
            '[[hosts]]\nname = "g1"\nqueue = "short"\nresources_available.ncpus = 4\n'
            '[resource_group]\nstaff = { shares = 40 }\nann = { parent = "staff", usage = 7.5 }\n'
            "[reservations.R1]\nstart = 2026-11-22T22:00:00Z\nend = 2026-11-23T22:00:00Z\n"
            "hosts.n1.ncpus = 4\n",
            'not_modelled = ["Hooks."]\ndedicated_time = [[2026-11-22T22:00:00Z, '
            "2026-11-23T22:00:00Z]]",
        )
    )
    refused = read = 0
    for seed in range(250 * part, 250 * (part + 1)):
        broken = damaged(text, random.Random(seed))
        try:
            site = parse_site(broken, source="site.toml")
        except InputError as error:
            refused += re.match(r"site\.toml(:\d+)?: ", str(error)) is not None
            continue
        read += 1
        assert parse_site(format_site(site), source="again") == site
    assert refused + read == 250, "each message names the file"
    assert refused > 50
    assert read > 50
