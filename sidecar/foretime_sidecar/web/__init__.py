"""The daemon as a process that serves: the application and the server around it.

`connections` decide who gets in, `auth` who asks, `api` and `page` what they get.

Public names: `Daemon`, `create_app`.
"""
