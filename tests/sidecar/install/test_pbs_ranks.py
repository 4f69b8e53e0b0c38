"""The resource and the formula that raise jobs: made, left alone, and given back."""

from __future__ import annotations

import json

import pytest
from foretime_estimators.jobs.errors import SchedulerError
from foretime_sidecar.clients.pbs.server import CommandFailedError, PbsServer
from foretime_sidecar.clients.pbs.start_rank import (
    FORMULA_DIRECTIVE,
    RESOURCE_DIRECTIVE,
    TYPE_DIRECTIVE,
)
from foretime_sidecar.install.doctor.checkup import Health
from foretime_sidecar.install.doctor.pbs import starts
from foretime_sidecar.install.pbs_ranks import (
    DELETE_RESOURCE,
    UNSET_FORMULA,
    install_ranks,
    rank_directives,
    uninstall_lines,
    uninstall_ranks,
)
from foretime_sidecar.install.steps import Outcome


class FakePbs(PbsServer):
    """A server with a formula, a resource and ranks, as OpenPBS 23.06 answers."""

    def __init__(self, formula: str | None = None, *, resource: bool = False) -> None:
        super().__init__()
        self.formula = formula
        self.type = "long" if resource else ""
        self.ranks: dict[str, int] = {}
        self.remembers = False
        self.refuses = ""
        self.starts: set[str] = set()  # jobs that start as soon as qselect has named them

    def run(self, *argv: str) -> str:
        if self.refuses and self.refuses in " ".join(argv):
            raise CommandFailedError("refused", "refused")
        match argv:
            case ("qstat", "-B", *_):
                server = {} if self.formula is None else {"job_sort_formula": self.formula}
                return json.dumps({"Server": {"pbs": server}})
            case ("qmgr", "-c", directive):
                return self._directive(directive)
            case ("qselect", "-s", "QHWTB", *_):
                found = list(self.ranks)
                for job in self.starts & self.ranks.keys():
                    del self.ranks[job]
                return "\n".join(found)
            case ("qalter", "-l", "ft_rank=", job):
                if job not in self.ranks:
                    raise CommandFailedError("refused", "Cannot modify attribute while job running")
                del self.ranks[job]
                self.remembers = True
                return ""
        raise AssertionError(argv)

    def _directive(self, directive: str) -> str:
        if directive == "list resource ft_rank":
            if not self.type:
                raise CommandFailedError("no such resource", "unknown")
            return f"Resource ft_rank\n    type = {self.type}\n    flag = r\n"
        if directive == RESOURCE_DIRECTIVE:
            assert not self.type
            self.type = "long"
        elif directive == TYPE_DIRECTIVE:
            if self.remembers or self.ranks:
                raise CommandFailedError("busy", "Resource busy on job")
            self.type = "long"
        elif directive == FORMULA_DIRECTIVE:
            assert self.type, "PBS refuses a formula of what is not there"
            self.formula = "ft_rank"
        elif directive == UNSET_FORMULA:
            self.formula = None
        elif directive == DELETE_RESOURCE:
            if self.remembers:
                raise CommandFailedError("busy", "Resource busy on job")
            self.type = ""
        else:
            raise AssertionError(directive)
        return ""


def test_the_resource_comes_before_the_formula() -> None:
    server, outcome = FakePbs(), Outcome()
    install_ranks(server, outcome)
    assert (server.formula, server.type, outcome.notes) == ("ft_rank", "long", [])
    assert outcome.done == [f"qmgr -c '{RESOURCE_DIRECTIVE}'", f"qmgr -c '{FORMULA_DIRECTIVE}'"]
    assert starts(server).health is Health.OK


def test_installed_twice_it_does_nothing() -> None:
    server, again = FakePbs(), Outcome()
    install_ranks(server, Outcome())
    install_ranks(server, again)
    assert (again.done, again.notes) == ([], [])


def test_a_formula_of_the_sites_own_stays() -> None:
    server, outcome = FakePbs("ncpus*walltime"), Outcome()
    install_ranks(server, outcome)
    assert (server.formula, server.type, outcome.done) == ("ncpus*walltime", "", [])
    assert "the site's own (ncpus*walltime) and stays" in outcome.notes[0]
    uninstall_ranks(server, outcome)
    assert server.formula == "ncpus*walltime"
    assert "the site's own" in starts(server).message


def test_uninstalled_nothing_is_left() -> None:
    server, outcome = FakePbs("ft_rank", resource=True), Outcome()
    uninstall_ranks(server, outcome)
    assert (server.formula, server.type, outcome.notes) == (None, "", [])
    assert list(uninstall_lines(server)) == []
    again = Outcome()
    uninstall_ranks(server, again)
    assert (again.done, again.notes) == ([], [])


def test_a_resource_that_pbs_keeps_is_told_of() -> None:
    """Jobs that had one are remembered; no job that waits has one, and no formula counts it."""
    server, outcome = FakePbs("ft_rank", resource=True), Outcome()
    server.ranks = {"7.pbs": 1003}
    uninstall_ranks(server, outcome)
    assert (server.formula, server.ranks) == (None, {})
    assert "the resource ft_rank stays" in outcome.notes[0]


def test_a_server_that_refuses_is_told_of() -> None:
    server = FakePbs()
    server.refuses = "create resource"
    with pytest.raises(SchedulerError):
        install_ranks(server, Outcome())
    assert server.formula is None


def test_what_is_missing_is_shown_and_found() -> None:
    server = FakePbs()
    assert rank_directives(server) == [RESOURCE_DIRECTIVE, FORMULA_DIRECTIVE]
    assert starts(server).health is Health.PROBLEM
    server.formula = "ft_rank"
    assert "there is no resource" in starts(server).message


def test_a_resource_of_another_type_is_mended() -> None:
    """A float of PBS's keeps 24 bits: 980410237 is read as 980410240."""
    server, outcome = FakePbs("ft_rank", resource=True), Outcome()
    server.type = "float"
    assert "is a float" in starts(server).message
    install_ranks(server, outcome)
    assert (server.type, outcome.done) == ("long", [f"qmgr -c '{TYPE_DIRECTIVE}'"])
    assert starts(server).health is Health.OK
    server.type, server.ranks = "float", {"7.pbs": 980_410_240}
    with pytest.raises(SchedulerError, match="busy"):
        install_ranks(server, Outcome())


def test_a_job_that_starts_meanwhile_is_no_failure() -> None:
    server, outcome = FakePbs("ft_rank", resource=True), Outcome()
    server.ranks, server.starts = {"7.pbs": 5, "8.pbs": 4}, {"7.pbs"}
    uninstall_ranks(server, outcome)
    assert server.ranks == {}
    assert "qalter -l ft_rank= 8.pbs" in outcome.done
    assert "qalter -l ft_rank= 7.pbs" not in outcome.done


def test_jobs_that_keep_their_ranks_are_told_of() -> None:
    server = FakePbs("ft_rank", resource=True)
    server.ranks, server.refuses = {"7.pbs": 5}, "qalter"
    with pytest.raises(SchedulerError, match=r"1 waiting jobs keep their ft_rank: 7.pbs"):
        uninstall_ranks(server, Outcome())
    assert server.formula is None
