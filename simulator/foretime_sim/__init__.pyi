# What `__init__.py` brings when it is asked for; type checkers read it, too.

from .campaigns.file import read_campaign as read_campaign
from .engine.engine import simulate as simulate
from .engine.estimated_run import simulate_with_estimator as simulate_with_estimator
from .engine.forward import forward_runs as forward_runs
from .engine.schedule import Schedule as Schedule
from .engine.snapshot import Snapshot as Snapshot
from .logs.filters import Filters as Filters
from .logs.filters import workload_of_log as workload_of_log
from .logs.log_files import read_log as read_log
from .logs.swf import write_swf as write_swf
from .machines.load import read_any_machine as read_any_machine
from .mocks.pbs.mock_pbs import MockPbs as MockPbs
from .mocks.slurm.mock_slurm import MockSlurm as MockSlurm
from .models.workload_models import generate as generate
from .policies.families import Backfill as Backfill
from .policies.order import Order as Order
from .policies.policy import Correction as Correction
from .policies.policy import EventOrder as EventOrder
from .policies.policy import Policy as Policy
from .scores.comparison import compare as compare
from .scores.metrics import METRICS as METRICS
from .waits.forecaster import WaitForecaster as WaitForecaster
from .workloads.job_log import JobLog as JobLog
from .workloads.workload import Workload as Workload
