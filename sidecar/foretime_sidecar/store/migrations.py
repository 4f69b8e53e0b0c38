"""How the store came to its present shape: each step named, made once, in order, and recorded.

A step that has been released is never edited; a change is a new step at the end.
"""

from __future__ import annotations

import secrets

from sqlite_utils import Database, Migrations

migrations = Migrations("foretime")


@migrations(name="0001-jobs-and-cursors")
def jobs_and_cursors(database: Database) -> None:
    """Finished jobs in the order learned, and how far each scheduler's accounting was read."""
    database.execute(
        """
        CREATE TABLE jobs (
            seq INTEGER PRIMARY KEY,
            job_id TEXT NOT NULL,
            user TEXT,
            project TEXT,
            queue TEXT,
            array_id TEXT,
            processors INTEGER NOT NULL,
            requested_time_s INTEGER NOT NULL,
            submit_time INTEGER NOT NULL,
            eligible_time INTEGER,
            start_time INTEGER,
            end_time INTEGER NOT NULL,
            actual_runtime_s INTEGER NOT NULL,
            ending TEXT NOT NULL,
            state TEXT NOT NULL,
            UNIQUE (job_id, submit_time)
        )
        """
    )
    database.execute(
        "CREATE TABLE cursors (name TEXT PRIMARY KEY, end_time INTEGER NOT NULL) WITHOUT ROWID"
    )


@migrations(name="0002-table-generations")
def table_generations(database: Database) -> None:
    """Every table that was begun; a number is spent before the file is written."""
    database.execute(
        """
        CREATE TABLE table_generations (
            generation INTEGER PRIMARY KEY,
            written_at INTEGER NOT NULL,
            valid_until INTEGER NOT NULL,
            mode TEXT NOT NULL,
            table_rows INTEGER NOT NULL,
            published INTEGER NOT NULL DEFAULT 0
        )
        """
    )


@migrations(name="0003-decisions")
def decisions(database: Database) -> None:
    """Keep what the hook decided for a job, as recorded with it."""
    database.execute(
        """
        CREATE TABLE decisions (
            job_id TEXT NOT NULL,
            submit_time INTEGER NOT NULL,
            decision TEXT NOT NULL,
            PRIMARY KEY (job_id, submit_time)
        ) WITHOUT ROWID
        """
    )


@migrations(name="0004-forecasts")
def forecasts(database: Database) -> None:
    """Every forecast given, to be held against what happened."""
    database.execute(
        """
        CREATE TABLE forecasts (
            seq INTEGER PRIMARY KEY,
            made_at INTEGER NOT NULL,
            user TEXT,
            project TEXT,
            queue TEXT,
            processors INTEGER NOT NULL,
            requested_time_s INTEGER NOT NULL,
            scheduled_time_s INTEGER NOT NULL,
            start_time INTEGER
        )
        """
    )


@migrations(name="0005-jobs-by-user")
def jobs_by_user(database: Database) -> None:
    """Find a user's own latest jobs at once."""
    database.execute("CREATE INDEX jobs_by_user ON jobs (user, end_time)")


@migrations(name="0006-what-became-of-jobs")
def what_became_of_jobs(database: Database) -> None:
    """Keep an audit of what each job was planned with, and why."""
    database.execute(
        """
        CREATE TABLE job_decisions (
            seq INTEGER PRIMARY KEY,
            made_at INTEGER NOT NULL,
            job_id TEXT NOT NULL,
            submit_time INTEGER NOT NULL,
            user TEXT,
            project TEXT,
            queue TEXT,
            processors INTEGER NOT NULL,
            action TEXT NOT NULL,
            requested_time_s INTEGER NOT NULL,
            scheduled_time_s INTEGER,
            reason TEXT NOT NULL,
            generation INTEGER
        )
        """
    )
    database.execute("CREATE INDEX job_decisions_by_job ON job_decisions (job_id, submit_time)")
    database.execute("CREATE INDEX job_decisions_by_user ON job_decisions (user, made_at)")
    database.execute("CREATE INDEX job_decisions_by_time ON job_decisions (made_at)")


@migrations(name="0007-oversight")
def oversight(database: Database) -> None:
    """Keep who was told what their jobs use, how head jobs slip, and what the breaker did."""
    database.execute(
        "CREATE TABLE told_users (user TEXT PRIMARY KEY, told_at INTEGER NOT NULL) WITHOUT ROWID"
    )
    database.execute(
        """
        CREATE TABLE head_jobs (
            job_id TEXT NOT NULL,
            submit_time INTEGER NOT NULL,
            seen_at INTEGER NOT NULL,
            first_planned_start INTEGER NOT NULL,
            last_planned_start INTEGER NOT NULL,
            PRIMARY KEY (job_id, submit_time)
        ) WITHOUT ROWID
        """
    )
    database.execute(
        """
        CREATE TABLE breaker_events (
            seq INTEGER PRIMARY KEY,
            happened_at INTEGER NOT NULL,
            event TEXT NOT NULL,
            reason TEXT NOT NULL
        )
        """
    )


@migrations(name="0009-site-factors")
def site_factors(database: Database) -> None:
    """Keep which site factors are ours; a job has two while it is not known which one it has."""
    database.execute(
        """
        CREATE TABLE site_factors (
            job_id TEXT NOT NULL,
            site_factor INTEGER NOT NULL,
            PRIMARY KEY (job_id, site_factor)
        ) WITHOUT ROWID
        """
    )


@migrations(name="0010-served-forecasts")
def served_forecasts(database: Database) -> None:
    """Keep each forecast with what came of it; those of before were never scored."""
    database.execute("DROP TABLE forecasts")
    database.execute(
        """
        CREATE TABLE served_forecasts (
            seq INTEGER PRIMARY KEY,
            kind TEXT NOT NULL,
            made_at INTEGER NOT NULL,
            counts_from INTEGER NOT NULL,
            job_id TEXT,
            submit_time INTEGER,
            user TEXT,
            project TEXT,
            queue TEXT,
            processors INTEGER NOT NULL,
            requested_time_s INTEGER NOT NULL,
            starts_now REAL NOT NULL,
            likely_wait_s INTEGER NOT NULL,
            wait_s TEXT,
            outcome TEXT,
            waited_s INTEGER,
            held_from INTEGER,
            pinball_s REAL
        )
        """
    )
    database.execute(
        "CREATE INDEX served_forecasts_by_job ON served_forecasts (job_id, submit_time) "
        "WHERE outcome IS NULL"
    )
    database.execute("CREATE INDEX served_forecasts_by_time ON served_forecasts (made_at)")
    database.execute("CREATE INDEX served_forecasts_by_user ON served_forecasts (user, made_at)")
    database.execute(
        "CREATE TABLE model_states (name TEXT PRIMARY KEY, saved_at INTEGER NOT NULL, "
        "state TEXT NOT NULL) WITHOUT ROWID"
    )


@migrations(name="0011-forgotten-users")
def forgotten_users(database: Database) -> None:
    """Mark whose history was erased, without their names."""
    database.execute(
        "CREATE TABLE forgotten_users (name_hash TEXT PRIMARY KEY, forgotten_at INTEGER NOT NULL) "
        "WITHOUT ROWID"
    )
    database.execute("CREATE TABLE forgetting_salt (salt TEXT NOT NULL)")
    database.execute("INSERT INTO forgetting_salt VALUES (?)", (secrets.token_hex(16),))


@migrations(name="0012-estimator-switches")
def estimator_switches(database: Database) -> None:
    """Keep which estimator was in use since when, and which was better; evidence is JSON."""
    database.execute(
        """
        CREATE TABLE estimator_switches (
            seq INTEGER PRIMARY KEY,
            happened_at INTEGER NOT NULL,
            event TEXT NOT NULL,
            estimator TEXT NOT NULL,
            instead_of TEXT,
            evidence TEXT NOT NULL
        )
        """
    )


@migrations(name="0013-refined-times")
def refined_times(database: Database) -> None:
    """Keep which time_min of pending jobs are ours besides those that the hook has noted."""
    database.execute(
        """
        CREATE TABLE refined_times (
            job_id TEXT NOT NULL,
            time_min_s INTEGER NOT NULL,
            set_at INTEGER NOT NULL,
            PRIMARY KEY (job_id, time_min_s)
        ) WITHOUT ROWID
        """
    )


@migrations(name="0014-order-switches")
def order_switches(database: Database) -> None:
    """Keep which order the queue stood in since when, and why; evidence is JSON."""
    database.execute(
        """
        CREATE TABLE order_switches (
            seq INTEGER PRIMARY KEY,
            happened_at INTEGER NOT NULL,
            queue_order TEXT NOT NULL,
            instead_of TEXT,
            case_of_table_1 TEXT,
            waiting_jobs INTEGER NOT NULL,
            evidence TEXT NOT NULL
        )
        """
    )
    database.execute("CREATE INDEX order_switches_by_time ON order_switches (happened_at)")


@migrations(name="0015-start-bounds")
def start_bounds(database: Database) -> None:
    """Keep when each job would start no later than, and what came of it."""
    database.execute(
        """
        CREATE TABLE start_bounds (
            job_id TEXT NOT NULL,
            submit_time INTEGER NOT NULL,
            user TEXT,
            noted_at INTEGER NOT NULL,
            planned_start INTEGER NOT NULL,
            latest_start INTEGER NOT NULL,
            outcome TEXT,
            happened_at INTEGER,
            PRIMARY KEY (job_id, submit_time)
        ) WITHOUT ROWID
        """
    )
    database.execute("CREATE INDEX start_bounds_by_time ON start_bounds (noted_at)")
    database.execute("CREATE INDEX start_bounds_by_user ON start_bounds (user)")


@migrations(name="0016-earlier-site-factors")
def earlier_site_factors(database: Database) -> None:
    """Keep what a job's site factor was before ours, so that it is given back as it was."""
    database.execute("ALTER TABLE site_factors ADD COLUMN earlier INTEGER NOT NULL DEFAULT 0")


@migrations(name="0017-plain-starts")
def plain_starts(database: Database) -> None:
    """Keep each job, and when it would have started on the plain scheduler; records are JSON."""
    database.execute(
        """
        CREATE TABLE plain_days (
            began_at INTEGER PRIMARY KEY,
            machine TEXT NOT NULL,
            site TEXT NOT NULL,
            with_us INTEGER NOT NULL,
            settled_at INTEGER
        )
        """
    )
    database.execute(
        """
        CREATE TABLE plain_starts (
            job_id TEXT NOT NULL,
            submit_time INTEGER NOT NULL,
            user TEXT,
            processors INTEGER NOT NULL,
            seen_at INTEGER NOT NULL,
            could_start INTEGER,
            start_time INTEGER,
            end_time INTEGER,
            runtime_s INTEGER,
            plain_start INTEGER,
            start_with_us INTEGER,
            with_us INTEGER,
            record TEXT NOT NULL,
            PRIMARY KEY (job_id, submit_time)
        ) WITHOUT ROWID
        """
    )
    database.execute("CREATE INDEX plain_starts_by_time ON plain_starts (could_start)")
    database.execute("CREATE INDEX plain_starts_by_user ON plain_starts (user)")


@migrations(name="0018-watched-jobs")
def watched_jobs(database: Database) -> None:
    """Keep which jobs users want news of, and what they were told last."""
    database.execute(
        """
        CREATE TABLE watched_jobs (
            user TEXT NOT NULL,
            job_id TEXT NOT NULL,
            asked_at INTEGER NOT NULL,
            likely_start INTEGER,
            sure_by INTEGER,
            soon INTEGER NOT NULL DEFAULT 0,
            moved_at INTEGER NOT NULL DEFAULT 0,
            PRIMARY KEY (user, job_id)
        ) WITHOUT ROWID
        """
    )
