"""Queue orders by name."""

from __future__ import annotations

from typing import Literal, TypeAlias

from foretime_sim.policies.choices import NamedChoice


class Order(NamedChoice):
    """Queue order: who is first; ties by submission, then by place in the log.

    ``xf`` and ``wfp`` change with time and are worked out anew at every pass, in double
    precision. t is t_sched in its queue role.

    Examples
    --------
    >>> from foretime_sim import Order, Policy
    >>> Order.parse("sjf")
    <Order.SJF: 'sjf'>
    >>> Policy(order=Order.SJF).order_name
    'sjf'
    """

    FCFS = "fcfs"
    """First come, first served."""
    SJF = "sjf"
    """Smallest t first."""
    LJF = "ljf"
    """Largest t first."""
    XF = "xf"
    """Largest expansion factor (wait + t) / t first."""
    WFP = "wfp"
    """Largest (wait / t)^3 * processors first (Tang 2010, equation 1)."""
    PRIORITY = "priority"
    """Largest priority from outside first, as given with each job (Slurm's SiteFactor)."""


OrderName: TypeAlias = Literal["fcfs", "sjf", "ljf", "xf", "wfp"]
"""Name of an order that follows from the jobs alone: every `Order` but ``priority``."""
