# What `__init__.py` brings when it is asked for; type checkers read it, too.

from .clients.client import SchedulerClient as SchedulerClient
from .daemon.sidecar import Sidecar as Sidecar
from .replays.replay import Replay as Replay
from .settings.settings import Settings as Settings
from .settings.settings_file import parse_settings as parse_settings
from .store.store import Store as Store
from .table.table import read_table as read_table
from .table.table import write_table as write_table
from .web.server import Daemon as Daemon
