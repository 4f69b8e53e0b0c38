"""The daemon that learns from finished jobs, publishes the table and answers questions.

`daemon.sidecar.Sidecar` is one poll, `web.server.Daemon` the process, `settings` what can be set,
`clients` how schedulers are asked, `store` what is kept, `table` the file of the hook, `replays`
all of it on a log, `cli` the command ``foretime``.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
