"""One poll: fetch, store, learn, publish, watch; how long the daemon pauses after it.

Knows no web server.

Public names: `Sidecar`, `PollRate`, `Pause`, `DaemonLock`, `Health`.
"""
