"""The page's text: who sees what, what is wrong with a form, names that are markup, headers."""

from __future__ import annotations

import itertools
import re
import time
from collections.abc import Callable, Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from foretime_estimators.jobs.errors import SchedulerError
from foretime_sidecar.web.auth.callers import Caller, caller_of
from foretime_sidecar.web.auth.identity import Identity
from foretime_sidecar.web.auth.peer import Peer
from foretime_sidecar.web.connections.request_guard import ANSWER_HEADERS
from foretime_sidecar.web.page.page_templates import HERE
from foretime_sidecar.web.page.views import (
    SHADE_SCALES_S,
    WaitScale,
    shade_names,
    shade_of,
    shade_scale,
    wait_maps,
)
from foretime_sim.mocks.slurm.mock_slurm import MockSlurm
from foretime_sim.mocks.slurm.slurm_job import SlurmSetup, Submission
from foretime_sim.policies.policy import Policy
from hypothesis import given
from hypothesis import strategies as st

from tests.support.slurm.mock_site import MockSite
from tests.support.slurm.planning_slurm import PlanningSlurm

NOW = 1_700_000_000
HOSTILE = "<script>alert('x')</script>\"><b>"
ROOT, NOBODY = (
    Caller(Identity.of_peer(Peer(1, 0, 0))),
    Caller(Identity.of_peer(Peer(2, 65534, 65534))),
)
UNKNOWN = Caller(None)
Get = Callable[..., Any]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MockSite]:
    """A machine that is full, and thirty jobs that wait; one of them nobody's."""
    slurm = MockSlurm(SlurmSetup(64), Policy(), None, NOW)
    slurm.submit(Submission("ann", "p", None, 64, 7200, 5400))
    for number in range(28):
        slurm.submit(Submission("bob", "p", None, 1 + number, 600 + 60 * number, 600))
    slurm.submit(Submission("nobody", "p", "main", 8, 1800, 1200))
    slurm.submit(Submission(HOSTILE, HOSTILE, HOSTILE, 8, 1800, 1200))
    slurm.advance(NOW + 60)
    with MockSite(tmp_path_factory.mktemp("page"), slurm) as site:
        yield site


@pytest.fixture
def get(site: MockSite) -> Iterator[Get]:
    """Ask for the page as somebody."""
    client = TestClient(site.app, base_url="http://localhost", raise_server_exceptions=False)

    def ask(path: str = "/", caller: Caller = ROOT) -> Any:
        site.app.dependency_overrides[caller_of] = lambda: caller
        return client.get(path)

    yield ask
    site.app.dependency_overrides.clear()


class Tags(HTMLParser):
    """Collects elements, and checks that they are closed in order."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))
        if tag not in {"meta", "link", "input", "br"}:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        if tag == "option":
            return
        while self.open and self.open[-1] == "option":
            self.open.pop()
        assert self.open.pop() == tag


def words(reply: Any) -> str:
    return " ".join(re.sub(r"<[^>]*>", " ", reply.text).split())


def test_who_may_see_all_is_shown_everything(get: Get) -> None:
    reply = get()
    assert reply.status_code == 200
    assert "1 running 30 waiting 64 processors" in words(reply)
    assert "Expected wait now" in reply.text
    assert "Waiting jobs" in reply.text
    assert "bob" in reply.text
    assert "1 of 2" in words(reply)
    later = get("/?page=2")
    assert "2 of 2" in words(later)
    rows = [text.count('role="rowheader"') for text in (reply.text, later.text)]
    assert rows == [25, 5]
    assert get("/?page=x").text.count('role="rowheader"') == 25


def test_others_see_their_own_jobs_and_how_many_more_wait(get: Get) -> None:
    reply = get(caller=NOBODY)
    assert "My waiting jobs" in reply.text
    assert reply.text.count('role="rowheader"') == 1
    assert "29 jobs of other people wait, too." in reply.text
    assert "bob" not in reply.text
    assert "alert" not in reply.text


def test_who_is_not_known_sees_no_job(get: Get) -> None:
    reply = get(caller=UNKNOWN)
    assert 'role="rowheader"' not in reply.text
    assert "Who you are is not known here" in reply.text
    assert "Expected wait now" in reply.text
    assert "bob" not in reply.text
    assert "30 jobs of other people wait, too." in reply.text


def test_a_link_with_a_job_shows_that_job(get: Get) -> None:
    waiting = get("/?job=3")
    assert waiting.text.count('role="rowheader"') == 1
    assert "Job 3" in words(waiting)
    assert "All waiting jobs" in words(waiting)
    assert "It started at" in words(get("/?job=1"))
    assert "No job 999 is in the queue" in words(get("/?job=999"))
    others = get("/?job=3", caller=NOBODY)
    assert 'role="rowheader"' not in others.text
    assert "No job 3 of yours is in the queue" in words(others)
    assert "Whether job 3 is yours is not known" in words(get("/?job=3", caller=UNKNOWN))
    assert "<i>" not in get("/?job=<i>").text


def test_names_that_are_markup_are_shown_as_text(get: Get) -> None:
    reply = get("/?page=2")
    assert "<script>alert" not in get().text + reply.text
    assert "&lt;script&gt;alert" in get().text + reply.text
    found = get("/?ntasks=" + "%22%3E%3Cscript%3Ealert(1)%3C/script%3E&time=5")
    assert found.status_code == 400
    assert "<script>alert" not in found.text
    (tasks,) = [each for tag, each in Tags(found.text).found if each.get("name") == "ntasks"]
    assert tasks["value"] == '"><script>alert(1)</script>'
    for text in (reply.text, found.text):
        scripts = [each for tag, each in Tags(text).found if tag == "script"]
        assert [each["src"] for each in scripts] == ["static/page.js"]


def test_the_page_answers_for_my_job_with_other_shapes_of_it(get: Get) -> None:
    reply = get("/?ntasks=8&time=4:00:00&scales=1")
    assert reply.status_code == 200
    text = words(reply)
    assert re.search(r"Likely starts in .*, 95% sure within .* \(by .*\)\.", text)
    assert "Other ways to run it" in text
    assert "--ntasks=4 --time=08:00:00" in text
    assert "What was assumed" in text
    assert 'value="4:00:00"' in reply.text
    assert "<details open>" not in reply.text
    assert "<details open>" in get("/?nodes=1&time=5").text


@pytest.mark.parametrize(
    ("query", "field", "what"),
    [
        ("ntasks=many&time=5", "ntasks", "Tasks = 'many': is no number"),
        ("ntasks=4", "time", "Time limit is missing."),
        ("ntasks=4&time=soon", "time", "Time limit = 'soon': is not a duration."),
        ("ntasks=65&time=5", "ntasks", "only 64 processors are up now."),
        ("nodes=65&time=5", "nodes", "Nodes = 65: only 64 processors are up now."),
        ("nodes=3-2&time=5", "nodes", "the most nodes are fewer"),
        ("time=5&time_min=10", "time_min", "is more than time"),
        ("time=5&mem=lots", "mem", "is no amount of memory"),
        ("time=5&begin=someday", "begin", "is no time"),
        ("time=999-00", "time", "is more than a year"),
    ],
)
def test_what_is_wrong_is_said_at_its_field(get: Get, query: str, field: str, what: str) -> None:
    reply = get(f"/?{query}")
    assert reply.status_code == 400
    assert what in words(reply).replace("&#39;", "'")
    (marked,) = [each for _, each in Tags(reply.text).found if "aria-invalid" in each]
    assert (marked["name"], marked["aria-describedby"]) == (field, f"wrong-{field}")
    assert "Expected wait now" in reply.text


def test_all_that_is_wrong_is_said_at_once(get: Get) -> None:
    reply = get("/?ntasks=banana&mem=lots&begin=now")
    assert reply.status_code == 400
    found = Tags(reply.text).found
    marked = [each["name"] for _, each in found if "aria-invalid" in each]
    assert marked == ["ntasks", "time", "mem"]
    assert [each["id"] for _, each in found if each.get("role") == "alert"] == [
        *("wrong-time", "wrong-ntasks", "wrong-mem")
    ]


def test_the_form_costs_what_advice_costs(site: MockSite) -> None:
    site.app.dependency_overrides[caller_of] = lambda: UNKNOWN
    client = TestClient(site.app, base_url="http://localhost")
    began = time.monotonic()
    statuses = [client.get("/?ntasks=8&time=60").status_code for _ in range(20)]
    passed_s = time.monotonic() - began
    site.app.dependency_overrides.clear()
    # A burst of 60 and 2 a second, of which each takes 1 for the page and 5 for the advice.
    assert 6 * statuses.count(200) <= 60 + 2 * passed_s
    assert statuses[-1] == 429


def test_every_file_comes_with_the_headers_and_no_other_file_comes(get: Get) -> None:
    for path in ("/", "/static/page.css", "/static/page.js", "/static/icon.svg"):
        reply = get(path)
        assert reply.status_code == 200
        for name, value in ANSWER_HEADERS.items():
            assert name == "Cache-Control" or reply.headers[name] == value
    assert get("/").headers["Cache-Control"] == "private, no-store"
    assert get("/static/../page.py").status_code == 404
    assert get("/static/").status_code == 404


def test_nothing_comes_from_elsewhere_and_no_style_is_inline() -> None:
    for path in (*(HERE / "templates").iterdir(), *(HERE / "static").iterdir()):
        text = path.read_text().replace("http://www.w3.org/2000/svg", "")
        assert not re.search(r"\w:?//\w", text), path
        assert not re.search(r"\sstyle=|\son\w+=|<style|javascript:|\|\s*safe", text), path


def test_every_control_and_chart_has_a_name(get: Get) -> None:
    found = Tags(get("/?ntasks=8&time=60").text).found
    labels = {each.get("for") for tag, each in found if tag == "label"}
    for tag, each in found:
        if tag == "input" and each.get("type") != "checkbox":
            assert each["id"] in labels
        if tag == "svg":
            assert each.get("aria-hidden") == "true" or {"aria-label", "aria-labelledby"} & set(
                each
            )
    assert [tag for tag, _ in found if tag in {"header", "main", "footer"}] == [
        *("header", "main", "footer")
    ]
    levels = [int(tag[1]) for tag, _ in found if re.fullmatch(r"h\d", tag)]
    assert levels[0] == 1
    assert all(after - before <= 1 for before, after in itertools.pairwise(levels))


# -- the scheduler's own plan ----------------------------------------------------------------------


@pytest.mark.usefixtures("stockholm")
def test_what_slurm_plans_itself_stands_beside_the_forecast(tmp_path: Path, get: Get) -> None:
    slurm = PlanningSlurm(SlurmSetup(4), Policy(), None, NOW)
    slurm.submit(Submission("bob", "p", None, 4, 7200, 600))
    for _ in range(2):
        slurm.submit(Submission("bob", "p", None, 4, 600, 600))
    slurm.advance(NOW + 60)
    with MockSite(tmp_path, slurm) as site:
        site.app.dependency_overrides[caller_of] = lambda: ROOT
        reply = TestClient(site.app, base_url="http://localhost").get("/")
    found = Tags(reply.text).found
    cells = [each for _, each in found if each.get("data-label") == "Slurm plans"]
    said = "Slurm's own plan: tomorrow 00:44 (squeue --start). It expects every job to use all of "
    assert [(each["title"] or "").startswith(said) for each in cells] == [True, False]
    shown = re.findall(r'data-label="Slurm plans"[^>]*>([^<]*)<', reply.text)
    assert [" ".join(each.split()) for each in shown] == ["1 h 30 min", "–"]
    assert "“Slurm plans” is what squeue --start says" in words(reply)
    assert "Slurm plans" not in get().text


# -- when something is wrong with the daemon or the scheduler --------------------------------------


def test_a_queue_that_was_read_long_ago(tmp_path: Path) -> None:
    slurm = MockSlurm(SlurmSetup(4), Policy(), None, NOW)
    slurm.submit(Submission("bob", "p", None, 4, 600, 600))
    with MockSite(tmp_path, slurm) as site:
        client = TestClient(site.app, base_url="http://localhost")
        assert "trouble" not in client.get("/").text
        site.fault = SchedulerError("squeue: Unable to contact slurm controller")
        site.advance(3600)
        reply = client.get("/")
        assert reply.status_code == 200
        assert (
            "The queue was last read 1 h ago: what follows is of then. Squeue: Unable to contact "
            "slurm controller." in words(reply)
        )


def test_a_queue_that_has_not_been_read_yet(tmp_path: Path) -> None:
    site = MockSite(tmp_path, MockSlurm(SlurmSetup(4), Policy(), None, NOW), fault=SchedulerError(
        "squeue: Unable to contact slurm controller"
    ))  # fmt: skip
    with site:
        reply = TestClient(site.app, base_url="http://localhost").get("/")
        assert reply.status_code == 503
        assert (
            "The queue has not been read yet: squeue: Unable to contact slurm controller. Try again"
            in words(reply)
        )
        assert "My job" in reply.text
        assert "Expected wait now" not in reply.text


# -- charts ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("scale_s", SHADE_SCALES_S)
def test_every_wait_has_a_shade(scale_s: tuple[int, ...]) -> None:
    assert len(shade_names(scale_s)) == len(scale_s) + 1
    assert [shade_of(bound, scale_s) for bound in scale_s] == list(range(len(scale_s)))
    assert shade_of(scale_s[-1] + 1, scale_s) == len(scale_s)
    css = (HERE / "static" / "page.css").read_text()
    for shade in range(len(shade_names(scale_s))):
        assert css.count(f".w{shade} {{ background: var(--w{shade}); }}") == 1
        assert css.count(f"--w{shade}: #") == 2  # light and dark


def drawn(*waits_s: int | None) -> dict[str, Any]:
    """Give an answer of ``/v1/map`` with some likely waits."""
    one = {"partition": None, "made_at": NOW, "sizes": [1], "times_s": [600] * len(waits_s)}
    return {"maps": [{**one, "median_wait_s": [waits_s], "bound_95_s": [waits_s]}]}


@pytest.mark.parametrize(
    ("waits_s", "last", "shades"),
    [
        ((0, 86_400), "24 h", [0, 7]),
        # All of these were one shade, of waits above 24 h.
        ((86_401, 3 * 86_400, None, 6 * 86_400), "14 d", [3, 4, None, 6]),
        ((3600, 20 * 86_400, 99 * 86_400), "90 d", [1, 5, 8]),
        ((), "24 h", []),
    ],
)
def test_the_scale_of_shades_holds_the_waits(
    waits_s: tuple[int | None, ...], last: str, shades: list[int | None]
) -> None:
    answer = drawn(*waits_s)
    assert shade_names(shade_scale(answer))[-2:] == (last, "longer")
    ((_, cells),) = wait_maps(answer, NOW)[0].rows
    assert [cell.shade for cell in cells] == shades


@given(st.lists(st.integers(0, 10**8), min_size=1))
def test_longer_waits_are_further_along_the_bar(waits_s: list[int]) -> None:
    scale = WaitScale.over(waits_s)
    places = [scale.at(wait_s) for wait_s in sorted(waits_s)]
    assert places == sorted(places)
    assert 0 <= places[0] <= places[-1] <= 97
    assert scale.at(0) == 0
    ticks = [place for place, _ in scale.ticks()]
    assert all(after - before >= 18 for before, after in itertools.pairwise([0, *ticks]))
