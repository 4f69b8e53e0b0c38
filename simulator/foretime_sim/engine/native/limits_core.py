"""A site's limits and jobs as the native core takes them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from foretime_sim import _core
from foretime_sim.sites.slurm.limit_tables import LimitTables, limit_tables
from foretime_sim.sites.slurm.reason_codes import reason_word
from foretime_sim.sites.slurm.site import SlurmSite


@dataclass(frozen=True, slots=True)
class LimitedJobRow:
    """A job with numbers for names (``LimitedJob`` of ``slurm/limit_setup.hpp``).

    Attributes
    ----------
    index
        Its place in the order of submission.
    user, association, qos, slurm_partitions, array
        Numbers; ``None``: none. The QOS is the one that it has by default if it names none.
    minutes
        Its time limit, rounded up.
    tres
        What it asks for, in the order of `LimitTables.kinds`, without licenses and billing, which
        the core works out.
    licenses
        Places in `LimitTables.license_names`, and how many of each.
    array_most_running
        0: any number.
    flaw
        What is wrong with it by itself: ``account``, ``qos``, ``license`` or ``none``.
    """

    index: int
    user: int | None
    association: int | None
    qos: int | None
    slurm_partitions: tuple[int, ...]
    minutes: int
    tres: tuple[int, ...]
    licenses: tuple[tuple[int, int], ...]
    array: int | None
    array_most_running: int
    flaw: str


class JobNumbers:
    """Turns jobs into rows for the native core.

    Examples
    --------
    >>> from foretime_sim.engine.native.limits_core import JobNumbers
    >>> from foretime_sim.machines.machine import Machine
    >>> from foretime_sim.sites.slurm.limit_tables import limit_tables
    >>> from foretime_sim.sites.slurm.site import SlurmSite
    >>> numbers = JobNumbers(limit_tables(SlurmSite(Machine.flat(64))))
    >>> row = numbers.row(
    ...     0, user=None, account=None, qos=None, slurm_partitions=("all",), time_limit_s=90,
    ...     tres={"cpu": 4, "node": 1}, licenses={}, array=None, array_most_running=0,
    ... )
    >>> row.minutes, row.tres
    (2, (4, 0, 1, 0, 0))
    """

    def __init__(self, tables: LimitTables) -> None:
        self.tables = tables
        self._users: dict[str, int] = {}
        self._arrays: dict[str, int] = {}
        self._qos = {name: number for number, name in enumerate(tables.qos_names)}
        self._slurm_partitions = {
            name: number for number, name in enumerate(tables.slurm_partition_names)
        }
        self._licenses = dict(zip(tables.license_names, tables.licenses, strict=True))

    def slurm_partition(self, name: str) -> int:
        """Give the number of a slurm_partition."""
        return self._slurm_partitions[name]

    def counts(self, tres: Mapping[str, int]) -> list[int]:
        """Give counts of resources in the order of `LimitTables.kinds`."""
        return [tres.get(kind, 0) for kind in self.tables.kinds]

    def whose(
        self, user: str | None, account: str | None, qos: str | None, slurm_partition: str
    ) -> tuple[int | None, int | None, str]:
        """Give the places of a job's association and QOS, and what is wrong with them by itself.

        ``slurm_partition`` is the first that it names; of the flaws it is ``account``, ``qos`` or
        ``none``.
        """
        tables = self.tables
        association = tables.accounts.association(user, account, slurm_partition)
        name = tables.accounts.qos(qos, association)
        number = self._qos.get(name)
        flaw = "none"
        if association is None and tables.associations_count:
            flaw = "account"
        elif (number is None and tables.qos_names and (tables.qos_counts or qos is not None)) or (
            number is not None
            and tables.qos_counts
            and association is not None
            and name not in association.allowed_qos
        ):
            flaw = "qos"
        return association.place if association else None, number, flaw

    def row(
        self,
        index: int,
        *,
        user: str | None,
        account: str | None,
        qos: str | None,
        slurm_partitions: tuple[str, ...],
        time_limit_s: int,
        tres: Mapping[str, int],
        licenses: Mapping[str, int],
        array: str | None,
        array_most_running: int,
    ) -> LimitedJobRow:
        """Give the row of a job."""
        association, number, flaw = self.whose(user, account, qos, slurm_partitions[0])
        if flaw == "none" and any(
            count > self._licenses.get(what, 0) for what, count in licenses.items()
        ):
            flaw = "license"
        return LimitedJobRow(
            index=index,
            user=None if user is None else self._users.setdefault(user, len(self._users)),
            association=association,
            qos=number,
            slurm_partitions=tuple(self._slurm_partitions[each] for each in slurm_partitions),
            minutes=-(-time_limit_s // 60),
            tres=tuple(self.counts(tres)),
            licenses=tuple(
                (self.tables.license_names.index(what), count)
                for what, count in licenses.items()
                if what in self.tables.license_names
            ),
            array=None if array is None else self._arrays.setdefault(array, len(self._arrays)),
            array_most_running=array_most_running,
            flaw=flaw,
        )


class NativeLimits:
    """The native core's limits alone, with numbers for names; reasons are Slurm's words.

    Examples
    --------
    >>> from foretime_sim.engine.native.limits_core import NativeLimits
    >>> from foretime_sim.machines.machine import Machine
    >>> from foretime_sim.sites.slurm.site import SlurmSite
    >>> limits = NativeLimits(SlurmSite(Machine.flat(64), licenses={"matlab": 1}), now=0)
    >>> limits.numbers.tables.licenses
    (1,)
    """

    def __init__(self, site: SlurmSite, now: int) -> None:
        tables = limit_tables(site)
        self.numbers = JobNumbers(tables)
        self.core = _core.SlurmLimits(tables, now)

    def word(self, code: int) -> str | None:
        """Give Slurm's word for a reason of the core."""
        return reason_word(code, self.numbers.tables.kinds)
