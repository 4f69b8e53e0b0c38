"""Job logs, the scheduling engine, a mock Slurm, and what is measured on them.

Logs: `log_files.read_log`, `filters.workload_of_log`, `workload.Workload`. Generated workloads:
`workload_models.generate`, `log_model.LogModel`, `tsafrir2005.with_estimates`.
Engine: `engine.simulate`, `engine.Engine`, `policy.Policy`, `schedule.Schedule`; `reference` is the
same in plain Python. Mock: `mock_slurm.MockSlurm`, `slurm_hook.LuaHook`. Scores: `metrics.score`,
`comparison.compare`.
"""
