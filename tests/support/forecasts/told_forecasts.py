"""A forecast as the daemon answers it, for what only reads some of its fields."""

from __future__ import annotations

from typing import Any

from foretime_sidecar.forecast_answer.forecast import ForecastAnswer, Reason


def told_forecast(**told: Any) -> ForecastAnswer:
    """Give a forecast of a job that waits, without times, but for what is told."""
    usual: dict[str, Any] = {
        "job_id": "1",
        "state": "pending",
        "scheduler": "slurm",
        "user": "ann",
        "account": None,
        "partition": None,
        "nodes": None,
        "processors": 1,
        "requested_time_s": 3600,
        "scheduled_time_s": 3600,
        "tasks": 1,
        "made_at": 0,
        "snapshot_age_s": 0,
        "starts_now": None,
        "likely_wait_s": None,
        "wait_s": None,
        "start_time": None,
        "end_s": None,
        "end_time": None,
        "planned_wait_s": None,
        "scheduler_start_time": None,
        "start_no_later_than": None,
        "started_at": None,
        "reason": Reason(code="Resources", text="waits for 1 processor; no job ahead in the queue"),
        "calibration": None,
        "quantiles": None,
        "machine_processors": 64,
        "running_jobs": 1,
        "pending_jobs": 1,
        "left_out": {},
        "assumptions": [],
    }
    return ForecastAnswer.model_validate(usual | told)
