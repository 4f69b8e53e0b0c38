"""Asks a Foretime daemon over its HTTP interface, from any program.

This file is all that is needed: it imports the standard library alone, and may be copied. What an
answer's fields mean is told by the daemon's ``/openapi.json`` and Foretime's ``docs/api.md``.

>>> from foretime_sidecar.answers.api_client import ForetimeClient
>>> daemon = ForetimeClient("unix:/run/foretime/foretime.sock")
>>> daemon.forecast(ntasks=64, time="2:00:00")["likely_wait_s"]  # doctest: +SKIP
1860
"""

from __future__ import annotations

import http.client
import ipaddress
import json
import random
import re
import socket
import time
from collections.abc import Callable, Mapping
from contextlib import closing
from typing import Any, Literal, NotRequired, Required, TypeAlias, TypedDict, Unpack, cast
from urllib.parse import quote, urlencode

DEFAULT_ADDRESS = "unix:/run/foretime/foretime.sock"
TOKEN_HEADER = "X-Foretime-Token"  # noqa: S105 - its name

_LONGEST_PATH, _HIGHEST_PORT = 107, 65_535
_CONNECT_S, _ATTEMPTS, _PAUSE_S = 2, 3, 0.1
# A unix socket says that it is busy where a port lets one wait.
_PASSING = (ConnectionError, FileNotFoundError, BlockingIOError)
_TOO_MANY = 429


# -- errors ----------------------------------------------------------------------------------------


class ForetimeApiError(Exception):
    """There is no answer.

    Parameters
    ----------
    what
        What is wrong.
    where
        The parameter, header, setting, path or address.
    remedy
        What to do.
    status
        Of HTTP; ``None`` if no daemon has answered.
    retry_after_s
        When to ask again, seconds; ``None`` if the daemon does not say.
    """

    def __init__(
        self,
        what: str,
        where: str,
        remedy: str,
        status: int | None = None,
        retry_after_s: int | None = None,
    ) -> None:
        super().__init__(f"{what}; {remedy}")
        self.what = what
        self.where = where
        self.remedy = remedy
        self.status = status
        self.retry_after_s = retry_after_s


class RefusedQuestionError(ForetimeApiError):
    """The question is wrong: whoever asks must change it."""


class NotAllowedError(RefusedQuestionError):
    """It is not the caller's to see or to change, or what was shown as proof is none."""


class NotFoundError(RefusedQuestionError):
    """The daemon knows nothing of that."""


class TooOftenError(RefusedQuestionError):
    """The caller asks too often; `retry_after_s` says when to ask again."""


class UnavailableError(ForetimeApiError):
    """The daemon can't answer now, or made a mistake."""


class NoAnswerError(UnavailableError):
    """No daemon answered."""


class NoDaemonError(NoAnswerError):
    """What answers is no Foretime daemon."""


_BY_STATUS: dict[int, type[RefusedQuestionError]] = {
    401: NotAllowedError,
    403: NotAllowedError,
    404: NotFoundError,
    _TOO_MANY: TooOftenError,
}


# -- the client ------------------------------------------------------------------------------------


class ForetimeClient:
    """Asks one daemon.

    Every method raises a `ForetimeApiError` if there is no answer.

    Parameters
    ----------
    address
        As in ``api.listen``: ``unix:PATH``, or a loopback address such as ``127.0.0.1:8642``.
    proof
        Gives headers that prove who asks, anew for each request; not needed on a unix socket.
    timeout_s
        For an answer.

    Raises
    ------
    ValueError
        If the address is none: what is wrong with it, and what to give.

    Examples
    --------
    >>> from foretime_sidecar.answers.api_client import ForetimeClient
    >>> token = "as scontrol token prints it"
    >>> client = ForetimeClient("127.0.0.1:8642", lambda: {"Authorization": f"Bearer {token}"})
    >>> client.address
    '127.0.0.1:8642'
    """

    def __init__(
        self,
        address: str = DEFAULT_ADDRESS,
        proof: Callable[[], Mapping[str, str]] | None = None,
        timeout_s: float = 60,
    ) -> None:
        self.address = address
        try:
            self._path, self._host, self._port = _place(address)
        except ValueError as error:
            raise ValueError(f"address = {address!r}: {error}") from None
        self._proof = proof
        self._timeout_s = timeout_s

    def ask(
        self, path: str, question: Mapping[str, Any] | None = None, method: str = "GET"
    ) -> dict[str, Any]:
        """Ask for what has no method here; for what changes anything, ask for a token first.

        Parameters
        ----------
        path
            Such as ``/v1/forecast``.
        question
            Its parameters; ``None`` leaves one out.
        method
            Of HTTP.
        """
        body = self._answer(path, question or {}, method)
        try:
            answer = json.loads(body)
        except ValueError as error:
            raise self._no_daemon() from error
        if not isinstance(answer, dict):
            raise self._no_daemon()
        return answer

    # -- waits -------------------------------------------------------------------------------------

    def forecast(self, **job: Unpack[JobParameters]) -> ForecastAnswer:
        """Say when a job submitted now would start."""
        return cast("ForecastAnswer", self.ask("/v1/forecast", job))

    def advice(self, **job: Unpack[JobParameters]) -> Advice:
        """Say when the same work would start in other shapes."""
        return cast("Advice", self.ask("/v1/advice", job))

    def job_forecast(self, job_id: str) -> ForecastAnswer:
        """Say when a job in the queue will start, or did."""
        path = f"/v1/jobs/{quote(job_id, safe='')}/forecast"
        return cast("ForecastAnswer", self.ask(path))

    def pending_forecasts(self, *, brief: bool = False) -> PendingForecasts:
        """Say when the pending jobs that the caller may see will start."""
        return cast("PendingForecasts", self.ask("/v1/jobs/forecasts", {"brief": int(brief)}))

    def wait_map(self, partition: str | None = None) -> MapAnswer:
        """Give expected waits over job size and requested time."""
        return cast("MapAnswer", self.ask("/v1/map", {"partition": partition}))

    def reliability(self, days: int | None = None) -> ReliabilityAnswer:
        """Say how well forecasts have done."""
        return cast("ReliabilityAnswer", self.ask("/v1/reliability", {"days": days}))

    # -- users' own --------------------------------------------------------------------------------

    def accuracy(self, user: str | None = None, project: str | None = None) -> AccuracyAnswer:
        """Say how accurate requests were."""
        question = {"user": user, "project": project}
        return cast("AccuracyAnswer", self.ask("/v1/accuracy", question))

    def decisions(
        self,
        job: str | None = None,
        user: str | None = None,
        since: int | None = None,
        limit: int | None = None,
    ) -> DecisionsAnswer:
        """Give the audit."""
        question = {"job": job, "user": user, "since": since, "limit": limit}
        return cast("DecisionsAnswer", self.ask("/v1/decisions", question))

    def explain(self, job: str) -> Explanation:
        """Say what became of one job."""
        return cast("Explanation", self.ask("/v1/explain", {"job": job}))

    def brought(
        self, since: int | None = None, by: Literal["user", "size", "week"] | None = None
    ) -> BroughtAnswer:
        """Give the hours of waiting that Foretime has saved, or would."""
        return cast("BroughtAnswer", self.ask("/v1/brought", {"since": since, "by": by}))

    def personal(self, user: str | None = None) -> PersonalAnswer:
        """Give all that is stored of a user."""
        return cast("PersonalAnswer", self.ask("/v1/me", {"user": user}))

    def forget(self, user: str | None = None) -> ForgetAnswer:
        """Erase all that is stored of a user."""
        return cast("ForgetAnswer", self.ask("/v1/me/forget", {"user": user}, "POST"))

    def notifications(self) -> Notifications:
        """Say which news of when jobs start the daemon sends the caller."""
        return cast("Notifications", self.ask("/v1/me/notify"))

    def notify(self, job: str) -> Notifications:
        """Have the daemon send the caller news of a job of their own that waits."""
        return cast("Notifications", self.ask("/v1/me/notify", {"job": job}, "POST"))

    def stop_notifying(self, job: str) -> Notifications:
        """Have the daemon send the caller no more news of a job."""
        return cast("Notifications", self.ask("/v1/me/notify/stop", {"job": job}, "POST"))

    # -- administration ----------------------------------------------------------------------------

    def operators(self) -> OperatorsAnswer:
        """Say whether Foretime helps or hurts, and what should be looked at."""
        return cast("OperatorsAnswer", self.ask("/v1/operators"))

    def ab(self, since: int) -> AbReport:
        """Compare planned jobs with those that were only observed."""
        return cast("AbReport", self.ask("/v1/ab", {"since": since}))

    def breaker(self) -> BreakerAnswer:
        """Give the circuit breaker's figures, limits, and whether it is open."""
        return cast("BreakerAnswer", self.ask("/v1/breaker"))

    def reset_breaker(self) -> BreakerReset:
        """Close the circuit breaker."""
        return cast("BreakerReset", self.ask("/v1/breaker/reset", method="POST"))

    def queue_order(self) -> QueueOrderAnswer:
        """Say which order the queue is kept in."""
        return cast("QueueOrderAnswer", self.ask("/v1/queue-order"))

    def queue_order_switches(
        self, since: int | None = None, limit: int | None = None
    ) -> OrderSwitchesAnswer:
        """Give the log of dynP's decisions."""
        question = {"since": since, "limit": limit}
        return cast("OrderSwitchesAnswer", self.ask("/v1/queue-order/switches", question))

    def estimators(self) -> EstimatorsAnswer:
        """Give the scores of all estimators on the site's jobs."""
        return cast("EstimatorsAnswer", self.ask("/v1/estimators"))

    def estimator_switches(self, since: int | None = None) -> EstimatorSwitchesAnswer:
        """Give which estimator was in use since when."""
        question = {"since": since}
        return cast("EstimatorSwitchesAnswer", self.ask("/v1/estimators/switches", question))

    # -- monitoring --------------------------------------------------------------------------------

    def health(self) -> HealthAnswer:
        """Say whether the daemon does its work."""
        return cast("HealthAnswer", self.ask("/healthz"))

    def metrics(self) -> str:
        """Give the daemon's own figures in Prometheus's text format."""
        return self._answer("/metrics", {}, "GET").decode()

    # -- HTTP --------------------------------------------------------------------------------------

    def token(self) -> TokenAnswer:
        """Give the token that a request must show if it changes anything; `ask` does it itself."""
        return cast("TokenAnswer", self.ask("/v1/token"))

    def _answer(self, path: str, question: Mapping[str, Any], method: str) -> bytes:
        given = {name: value for name, value in question.items() if value is not None}
        try:
            target = f"{path}?{urlencode(given)}" if given else path
        except UnicodeEncodeError as error:
            what = f"{error.object!r}: is not UTF-8 text"
            raise RefusedQuestionError(what, path, "write it in UTF-8", 400) from None
        headers = {} if method == "GET" else {TOKEN_HEADER: self.token()["token"]}
        try:
            status, retry_after, body = self._patiently(target, method, headers)
        except TimeoutError as error:
            raise NoAnswerError(
                f"the foretime daemon at {self.address} took more than {self._timeout_s:g} s",
                self.address,
                "try again later",
            ) from error
        except PermissionError as error:
            raise NoAnswerError(
                f"you may not connect to {self.address}",
                self.address,
                "ask the administrator about api.socket_mode",
            ) from error
        except (OSError, http.client.IncompleteRead) as error:
            raise NoAnswerError(
                f"no foretime daemon answers at {self.address}",
                self.address,
                "is it running (systemctl status foretime)?",
            ) from error
        except http.client.HTTPException as error:
            raise self._no_daemon() from error
        if status != http.client.OK:
            raise self._refusal(status, retry_after, body)
        return body

    def _refusal(self, status: int, retry_after: str | None, body: bytes) -> ForetimeApiError:
        try:
            said = json.loads(body)["error"]
            parts = str(said["what"]), str(said["where"]), str(said["remedy"])
        except (ValueError, KeyError, TypeError):
            return self._no_daemon()
        kind: type[ForetimeApiError] = _BY_STATUS.get(status, RefusedQuestionError)
        if status >= http.client.INTERNAL_SERVER_ERROR:
            kind = UnavailableError
        wait_s = int(retry_after) if retry_after and retry_after.isdecimal() else None
        return kind(*parts, status, wait_s)

    def _no_daemon(self) -> NoDaemonError:
        return NoDaemonError(
            f"{self.address}: what answers there is no foretime daemon",
            self.address,
            "give the address that api.listen names",
        )

    def _patiently(
        self, target: str, method: str, headers: Mapping[str, str]
    ) -> tuple[int, str | None, bytes]:
        """Ask, and ask again a little later if nobody answers: a daemon may be starting anew."""
        for attempt in range(1, _ATTEMPTS):
            try:
                return self._request(target, method, headers)
            except _PASSING:
                time.sleep(attempt * _PAUSE_S * (1 + random.random()))  # noqa: S311 - no secret
        return self._request(target, method, headers)

    def _request(
        self, target: str, method: str, headers: Mapping[str, str]
    ) -> tuple[int, str | None, bytes]:
        shown = {} if self._proof is None else dict(self._proof())
        with closing(http.client.HTTPConnection(self._host, self._port)) as connection:
            connection.sock = self._connected()
            connection.sock.settimeout(self._timeout_s)
            connection.request(method, target, headers=shown | dict(headers))
            reply = connection.getresponse()
            return reply.status, reply.getheader("Retry-After"), reply.read()

    def _connected(self) -> socket.socket:
        try:
            if self._path is None:
                return socket.create_connection((self._host, self._port or 0), _CONNECT_S)
            connected = socket.socket(socket.AF_UNIX)
            try:
                connected.settimeout(_CONNECT_S)
                connected.connect(self._path)
            except OSError:
                connected.close()
                raise
        except TimeoutError as error:  # nobody has taken the question
            raise ConnectionError(*error.args) from error
        return connected


def _place(address: str) -> tuple[str | None, str, int]:
    """Give the path of a unix socket, and host and port; `ValueError` says what is wrong."""
    if address.startswith("unix:"):
        path = address.removeprefix("unix:")
        if path.startswith("//"):
            raise ValueError(f"it is no URL; give unix:{path.removeprefix('/')}")
        if not path or "\0" in path or len(path.encode(errors="replace")) > _LONGEST_PATH:
            raise ValueError(f"give unix:PATH, a path of 1 to {_LONGEST_PATH} bytes")
        return path, "localhost", 80
    scheme, _, rest = address.partition("://")
    if rest:
        name = rest.partition("/")[0]
        only = "" if scheme == "http" else ", and the daemon speaks HTTP alone"
        raise ValueError(f"it is a URL{only}; leave {scheme}:// out: give {name or 'HOST:PORT'}")
    if "/" in address and ":" not in address:
        raise ValueError(f"it is a path; of a unix socket give unix:{address}")
    host, colon, port = address.rpartition(":")
    if not colon or not host:
        raise ValueError("the host or the port is missing; give unix:PATH or HOST:PORT")
    if not (port.isascii() and port.isdecimal() and 0 < int(port) <= _HIGHEST_PORT):
        raise ValueError(f"{port!r} is no port; give a number from 1 to {_HIGHEST_PORT}")
    host = host.removeprefix("[").removesuffix("]")
    if ":" in host:
        ipaddress.IPv6Address(host)  # says itself what is wrong
    elif not re.fullmatch(r"[A-Za-z0-9_.-]+", host):
        raise ValueError(f"{host!r} is no name of a host; give HOST:PORT")
    return None, host, int(port)


# -- answers ---------------------------------------------------------------------------------------
# Made of /openapi.json: python -m tests.support.client_answers


class JobParameters(TypedDict, total=False):
    """A job that is asked about."""

    ntasks: int
    processors: int
    nodes: str
    ntasks_per_node: int
    cpus_per_task: int
    mem: str
    gres: str
    gpus: str
    select: str
    place: str
    time: Required[str]
    time_min: str
    partition: str
    account: str
    project: str
    qos: str
    reservation: str
    begin: str
    exclusive: bool
    dependency: str
    scales: bool
    user: str


class AbReport(TypedDict):
    """Both groups, and planned less observed."""

    since: int
    large_processors: int | None
    planned: Group
    observed: Group
    difference: Group


class Account(TypedDict):
    """What Foretime has brought, and what it would have on days on which it did nothing."""

    since: int
    by: Literal["user", "size", "week"]
    brought: Brought
    brought_rows: list[Brought]
    would_bring: Brought
    would_bring_rows: list[Brought]
    model: ModelError
    left_out_jobs: int


class AccuracyAnswer(TypedDict):
    """How accurate requests were."""

    user: str | None
    classes: list[ClassAccuracy]
    everyone: list[EveryonesAccuracy]
    smallest_group: int
    project: NotRequired[ProjectAccuracy]


class Advice(TypedDict):
    """A job as asked, and other shapes of it, those first that change least."""

    asked: ForecastAnswer
    alternatives: list[Alternative]
    cheapest: int | None


class AgedSite(TypedDict):
    """The site that the queue is run forward as."""

    source: str
    version: str | None
    slurm_partitions: int
    queues: int
    read_at: int | None
    problem: str
    why_not: str
    age_s: int | None


class Alternative(TypedDict):
    """One other shape of a job."""

    change: dict[str, str | int]
    text: str
    command: str
    cost: Literal["more", "same", "less"]
    sooner_s: int | None
    done_sooner_s: int | None
    forecast: ForecastAnswer


class BoardRow(TypedDict):
    """One estimator."""

    name: str
    in_use: bool
    jobs: int
    accuracy: float | None
    under_predicted: float | None
    covered: float | None
    log_error: float | None
    error_s: float | None
    pinball_s: float | None
    accuracy_interval: Interval | None
    behind: float | None
    behind_interval: Interval | None
    as_good: bool
    eligible: bool
    set_aside: str
    cost_s: float | None
    classes: list[ClassScores]


class BreakerAnswer(TypedDict):
    """The circuit breaker."""

    open: bool
    tripped_at: int | None
    reason: str | None
    figures: BreakerFigures
    limits: BreakerSettings


class BreakerFigures(TypedDict):
    """What the breaker judges."""

    planned_jobs: int
    outliving_percent: float | None
    head_slip_s: int
    wait_p99_s: int | None


class BreakerReset(TypedDict):
    """The circuit breaker before it was closed."""

    was_open: bool
    reason: str | None


class BreakerSettings(TypedDict):
    """When enforce is given up for observe, until an administrator says foretime enable."""

    window_s: int
    least_jobs: int
    most_outliving_percent: float
    most_head_slip_s: int
    most_wait_p99_s: int


class BriefForecast(TypedDict):
    """A forecast without what all jobs have in common."""

    job_id: str | None
    state: Literal["not-submitted", "pending", "running"]
    scheduler: Literal["slurm", "pbs"]
    user: str | None
    account: str | None
    partition: str | None
    nodes: int | None
    processors: int
    requested_time_s: int
    scheduled_time_s: int
    tasks: int
    made_at: int
    snapshot_age_s: int
    starts_now: float | None
    likely_wait_s: int | None
    wait_s: dict[str, int] | None
    start_time: dict[str, int] | None
    end_s: dict[str, int] | None
    end_time: dict[str, int] | None
    planned_wait_s: int | None
    scheduler_start_time: int | None
    start_no_later_than: StartBound | None
    started_at: int | None
    reason: Reason
    calibration: Calibration | None


class Brought(TypedDict):
    """What has come of some jobs."""

    name: str
    jobs: int
    days: int
    without_hours: float
    with_hours: float
    saved_hours: float
    low_hours: float | None
    high_hours: float | None


class BroughtAnswer(TypedDict):
    """What Foretime has brought."""

    user: str | None
    since: int
    by: Literal["user", "size", "week"]
    brought: Brought
    brought_rows: list[Brought]
    would_bring: Brought
    would_bring_rows: list[Brought]
    model: ModelError
    left_out_jobs: int
    standing: LateStanding


class Calibration(TypedDict):
    """How forecasts have done, over all users."""

    forecasts_scored: int
    within_95: float | None
    days: int


class ClassAccuracy(TypedDict):
    """How accurate requests of one class of requested time were."""

    requested_time_class: int
    above_s: int
    up_to_s: int | None
    submissions: int
    threshold: int
    processor_seconds: int
    largest_processor_seconds: int
    adjustment: float | None
    used_share: float | None


class ClassHistory(TypedDict):
    """What is known of a name in one class, sufficient or not."""

    scope: Literal["user", "project"]
    name: str
    requested_time_class: int
    above_s: int
    up_to_s: int | None
    submissions: int
    threshold: int
    processor_seconds: int
    largest_processor_seconds: int
    adjustment: float | None
    used_share: float | None


class ClassScores(TypedDict):
    """How one estimator does in one class of jobs."""

    kind: str
    label: str
    jobs: int
    accuracy: float
    under_predicted: float


class DayScores(TypedDict):
    """The forecasts made on one day."""

    day: int
    scored: int
    within_95: float
    median_error_s: int
    brier_now: float


class Decision(TypedDict):
    """One line of the audit."""

    made_at: int
    job_id: str
    submit_time: int
    user: str | None
    project: str | None
    queue: str | None
    processors: int
    action: str
    requested_time_s: int
    scheduled_time_s: int | None
    reason: str
    generation: int | None


class DecisionsAnswer(TypedDict):
    """The audit."""

    decisions: list[Decision]


class EstimatorFigures(TypedDict):
    """How one estimator does, in short."""

    name: str
    in_use: bool
    jobs: int
    accuracy: float | None
    under_predicted: float | None
    set_aside: str


class EstimatorSwitch(TypedDict):
    """One line of the log."""

    happened_at: int
    event: Literal["in-use", "more-accurate"]
    estimator: str
    instead_of: str | None
    evidence: dict[str, Any]


class EstimatorSwitchesAnswer(TypedDict):
    """Which estimator was in use since when, and which was found to be better."""

    switches: list[EstimatorSwitch]


class EstimatorsAnswer(TypedDict):
    """How every estimator does on the site's jobs."""

    made_at: int
    complete: bool
    half_life_days: int
    days: int
    users: int
    followed: int
    late: int
    too_many: int
    most_under_predicted: float
    best: str | None
    in_use: str
    rows: list[BoardRow]
    more_accurate: str | None
    scheme: str


class EveryonesAccuracy(TypedDict):
    """A over all users with enough history in a class of requested times."""

    requested_time_class: int
    above_s: int
    up_to_s: int | None
    users: int
    median_adjustment: float


class ExplainedJobs(TypedDict):
    """Jobs of which the latest word of the audit is the same."""

    action: str
    reason: str
    jobs: int
    latest: int
    why: str


class ExplainedSwitch(TypedDict):
    """One decision of dynP's."""

    happened_at: int
    order: str
    instead_of: str | None
    case: str | None
    waiting_jobs: int
    qualities: dict[str, float | None]
    quality: str
    why: str


class Explanation(TypedDict):
    """What became of one job."""

    made_at: int
    job_id: str
    submit_time: int
    user: str | None
    project: str | None
    queue: str | None
    processors: int
    action: str
    requested_time_s: int
    scheduled_time_s: int | None
    reason: str
    generation: int | None
    why: str
    history: list[Decision]
    own_jobs: OwnJobs | None
    estimated_from: str | None
    mode: str | None


class Figure(TypedDict):
    """A figure."""

    value: float | None
    low: float | None
    high: float | None


class ForecastAnswer(TypedDict):
    """The whole answer for a job."""

    job_id: str | None
    state: Literal["not-submitted", "pending", "running"]
    scheduler: Literal["slurm", "pbs"]
    user: str | None
    account: str | None
    partition: str | None
    nodes: int | None
    processors: int
    requested_time_s: int
    scheduled_time_s: int
    tasks: int
    made_at: int
    snapshot_age_s: int
    starts_now: float | None
    likely_wait_s: int | None
    wait_s: dict[str, int] | None
    start_time: dict[str, int] | None
    end_s: dict[str, int] | None
    end_time: dict[str, int] | None
    planned_wait_s: int | None
    scheduler_start_time: int | None
    start_no_later_than: StartBound | None
    started_at: int | None
    reason: Reason
    calibration: Calibration | None
    quantiles: list[list[float | int]] | None
    machine_processors: int
    running_jobs: int
    pending_jobs: int
    left_out: dict[str, int]
    assumptions: list[str]


class ForgetAnswer(TypedDict):
    """What was erased."""

    user: str
    erased: dict[str, int]
    forgotten_at: int


class Group(TypedDict):
    """One group of jobs, or what one has more than the other."""

    jobs: int
    users: int
    wait_mean_s: Figure
    wait_median_s: Figure
    wait_p99_s: Figure
    outliving_percent: Figure
    large_jobs: int
    large_wait_mean_s: Figure


class HealthAnswer(TypedDict):
    """Whether the daemon does its work."""

    status: Literal["starting", "ok"]
    poll_age_s: int | None
    pause_s: int
    pause_reason: str
    table_generation: int | None
    table_age_s: int | None
    table_valid_s: int | None
    table_rows: int
    mode: str | None
    mode_reason: str
    finished_jobs: int
    last_error: str
    last_forecast_error: str
    site: AgedSite | None
    last_beside_error: str
    last_estimators_error: str


class Interval(TypedDict):
    """Where the mean lies at the stated level."""

    low: float
    high: float


class KeptBounds(TypedDict):
    """How many bounds have been kept."""

    days: int
    judged: int
    users: int
    kept_share: float | None


class LateStanding(TypedDict):
    """How the runs of the plain scheduler stand, and what they find."""

    why_not: str
    days: int
    settled_until: int | None
    open_jobs: int
    ran_at: int | None
    model_is_off: bool
    late_jobs: int
    behind_s: int
    is_behind: bool


class Line(TypedDict):
    """One line of the operators' view."""

    name: str
    title: str
    verdict: Verdict
    text: str
    remedy: str


class LineGroup(TypedDict):
    """Lines of one subject."""

    name: str
    title: str
    verdict: Verdict
    lines: list[Line]


class MapAnswer(TypedDict):
    """Expected waits over job size and requested time."""

    made_at: int
    maps: list[PartitionMap]


class ModelError(TypedDict):
    """How far the model is from the real scheduler."""

    jobs: int
    days: int
    bias_percent: float | None
    spread_percent: float | None


class Notifications(TypedDict):
    """What news of when jobs start the daemon sends a user."""

    user: str
    way: Literal["mail", "webhook"] | None
    address: str | None
    jobs: list[NotifiedJob]


class NotifiedJob(TypedDict):
    """A job that its user has news of."""

    job_id: str
    asked_at: int


class OperatorsAnswer(TypedDict):
    """Whether Foretime helps or hurts, and what should be looked at."""

    made_at: int
    started_at: int
    helps: Literal["yes", "no", "unclear", "early", "off", "stopped"]
    text: str
    verdict: Verdict
    groups: list[LineGroup]
    brought: Account | None
    ab: AbReport | None
    forecast_days: list[DayScores]
    estimators: list[EstimatorFigures]
    decided: list[ExplainedJobs]
    refused_requests: dict[str, int]


class OrderSwitchesAnswer(TypedDict):
    """The log of dynP's decisions."""

    switches: list[ExplainedSwitch]


class OrderTry(TypedDict):
    """The last try to find the best order."""

    tried_at: int
    kept: str | None
    took_s: float
    waiting_jobs: int | None
    case: str | None
    best: str | None
    quality: str
    qualities: dict[str, float | None] | None


class OtherJobs(TypedDict):
    """Jobs that are not the caller's to see."""

    pending: int


class OwnJobs(TypedDict):
    """History of a user's jobs in one class."""

    submissions: int
    threshold: int
    adjustment: float | None
    used_share: float | None


class PartitionMap(TypedDict):
    """Expected waits in one partition."""

    partition: str | None
    made_at: int
    sizes: list[int]
    times_s: list[int]
    median_wait_s: list[list[int | None]]
    bound_95_s: list[list[int | None]]


class PendingForecasts(TypedDict):
    """Forecasts of all pending jobs that a caller may see."""

    made_at: int
    jobs: list[ForecastAnswer] | list[BriefForecast]
    others: OtherJobs


class PersonalAnswer(TypedDict):
    """All that is stored of one user."""

    user: str
    jobs: list[dict[str, str | int | float | None]]
    job_decisions: list[dict[str, str | int | float | None]]
    served_forecasts: list[dict[str, str | int | float | None]]
    start_bounds: list[dict[str, str | int | float | None]]
    plain_starts: list[dict[str, str | int | float | None]]
    told_users: list[dict[str, str | int | float | None]]
    watched_jobs: list[dict[str, str | int | float | None]]
    decisions: list[dict[str, str | int | float | None]]
    learned: list[ClassHistory]
    forgotten_at: int | None


class ProjectAccuracy(TypedDict):
    """How accurate requests of a project were."""

    name: str
    classes: list[ClassAccuracy]
    complete: bool


class QueueOrderAnswer(TypedDict):
    """The order that the queue is kept in."""

    set: str
    order: str | None
    since: int | None
    instead_of: str | None
    why: str | None
    switches_of_a_day: int | None
    refused: str | None
    going_first: int
    last_try: OrderTry | None
    raised: int | None
    missed: int | None


class Reason(TypedDict):
    """Why a job does not run."""

    code: str
    text: str


class ReliabilityAnswer(TypedDict):
    """How well the forecasts served have done, over all users."""

    days: int
    scored: int
    users: int
    levels: list[float]
    share_within: list[float | None]
    brier_now: float | None
    median_error_s: int | None
    pinball_s: float | None
    by_day: list[DayScores]
    start_no_later_than: KeptBounds | None
    smallest_group: int


class StartBound(TypedDict):
    """When a waiting job should start no later than."""

    time: int
    wait_s: int
    planned_start: int | None
    noted_at: int
    kept_share: float | None
    judged: int | None
    days: int | None


class TokenAnswer(TypedDict):
    """The token that a request must show if it changes anything."""

    token: str
    valid_s: int


Verdict: TypeAlias = Literal[
    "all is well", "too early to tell", "not in use", "look at it", "act now"
]
"""What a line comes to."""
