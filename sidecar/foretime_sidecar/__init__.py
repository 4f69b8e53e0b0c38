"""The daemon that learns from finished jobs, publishes the table and answers questions.

`sidecar.Sidecar` is one poll, `server.Daemon` the process, `settings.Settings` what can be set,
`clients` how schedulers are asked, `store.Store` what is kept, `table` the file of the hook;
`replay.Replay` runs all of it on a log.
"""
