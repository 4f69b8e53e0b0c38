"""One poll: fetch, store, learn, publish, watch; how often, and by whom.

Knows no web server.

Public names: `Sidecar`, `PollRate`, `Pause`, `DaemonLock`, `Health`.
"""
