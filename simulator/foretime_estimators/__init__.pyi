# What `__init__.py` brings when it is asked for; type checkers read it, too.

from .accuracy.accuracy import AccuracyModel as AccuracyModel
from .accuracy.accuracy_settings import AccuracySettings as AccuracySettings
from .estimators.estimator import RuntimeEstimator as RuntimeEstimator
from .estimators.registry import ESTIMATORS as ESTIMATORS
from .estimators.registry import parse_estimator as parse_estimator
from .jobs.errors import ForetimeError as ForetimeError
from .jobs.errors import InputError as InputError
from .jobs.jobs import Ending as Ending
from .jobs.jobs import FinishedJob as FinishedJob
from .jobs.jobs import JobRequest as JobRequest
