"""The page in a headless Chromium: narrow and wide, light and dark, by keyboard, without script."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

import pytest
from foretime_estimators.time_units import DAY_S
from foretime_sidecar.answers.forecast_asking import ask_forecast
from foretime_sidecar.forecasts.forecast_reliability import DayScores, Reliability
from foretime_sidecar.forecasts.wait_forecasting import WaitForecasting
from foretime_sidecar.web.api import operators
from foretime_sidecar.web.api.verdicts import Line, Verdict
from foretime_sidecar.wording.clocks import in_zone, zone_name
from foretime_sidecar.wording.waits import headline
from foretime_sim.mocks.slurm.slurm_job import SlurmSetup, Submission
from foretime_sim.policies.policy import Policy
from foretime_sim.waits.forecaster import LEVELS

from tests.support.processes.socket_bridge import SocketBridge
from tests.support.slurm.mock_site import MockSite
from tests.support.slurm.planning_slurm import PlanningSlurm

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page, Request

NOW = 1_700_000_000
# Five days of forecasts, which both pages show.
DAYS = tuple(DayScores(NOW + DAY_S * day, 99, 0.9 + day / 100, 600, 0.1) for day in range(5))
DONE = Reliability(30, 495, 7, LEVELS, LEVELS, 0.1, 600, 60.0, DAYS)
# A phone's, and a desk's.
WIDTHS = {"phone": 360, "desk": 1280}
# WCAG 2.2, 1.4.3, for text of normal size.
CONTRAST = 4.5


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MockSite]:
    """A machine with thirty jobs that wait, one of them by a user with a hostile name.

    Others have run, so that there is something to say of estimators, and of forecasts.
    """
    slurm = PlanningSlurm(SlurmSetup(512), Policy(), None, NOW - 7200)
    for number in range(40):
        slurm.submit(Submission(f"user{number % 7}", "p", None, 8, 3600, 60 * (1 + number)))
    slurm.advance(NOW)
    slurm.submit(Submission("ann", "p", None, 512, 7200, 5400))
    for number in range(30):
        limit = 600 * (1 + number % 20)
        slurm.submit(Submission(f"user{number % 7}", "p", None, 16 * (1 + number), limit, limit))
    slurm.submit(Submission("<img src=x onerror=alert(1)>", "p", "long-slurm_partition", 8, 60, 60))
    slurm.advance(NOW + 60)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(WaitForecasting, "reliability_of", lambda *_: DONE)
        with MockSite(tmp_path_factory.mktemp("page"), slurm) as site:
            assert site.daemon.shadow is not None
            while site.daemon.shadow.refresh():
                pass
            yield site


@pytest.fixture(scope="module")
def url(site: MockSite) -> Iterator[str]:
    """Where a web server would serve the page."""
    with SocketBridge(site.socket_path) as bridge:
        yield f"http://127.0.0.1:{bridge.port}/"


Open = Callable[..., "Page"]


@pytest.fixture
def visit(browser: Browser, url: str) -> Iterator[Open]:
    """Open pages; none may write to the console, fail, or ask another host for anything."""
    trouble: list[str] = []
    contexts = []

    def note_elsewhere(asked: Request) -> None:
        if not asked.url.startswith(url):
            trouble.append(asked.url)

    def opened(query: str = "", **options: Any) -> Page:
        context = browser.new_context(
            **{"viewport": {"width": 1280, "height": 900}, "color_scheme": "light"} | options
        )
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda said: trouble.append(said.text))
        page.on("pageerror", lambda error: trouble.append(str(error)))
        page.on("dialog", lambda dialog: trouble.append(dialog.message))
        page.on("request", note_elsewhere)
        page.on("requestfailed", lambda asked: trouble.append(f"failed: {asked.url}"))
        page.goto(url + query)
        page.wait_for_load_state("networkidle")
        return page

    yield opened
    for context in contexts:
        context.close()
    assert not trouble


_TOO_WIDE = """
() => [...document.querySelectorAll('body *')]
  .filter(each => !each.closest('.scroll, .hidden, .skip')
    && each.getBoundingClientRect().right > innerWidth + 0.5)
  .map(each => each.outerHTML.slice(0, 80))
"""
_LOW_CONTRAST = """
(least) => {
  const canvas = document.createElement('canvas');
  canvas.width = canvas.height = 1;
  const ink = canvas.getContext('2d', { willReadFrequently: true });
  // Any way to write a colour becomes numbers by painting with it, over what is below.
  const painted = (colours) => {
    ink.clearRect(0, 0, 1, 1);
    for (const colour of colours) { ink.fillStyle = colour; ink.fillRect(0, 0, 1, 1); }
    return [...ink.getImageData(0, 0, 1, 1).data].slice(0, 3);
  };
  const luminance = (rgb) => {
    const [r, g, b] = rgb.map(v => v / 255)
      .map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const low = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node; (node = walker.nextNode());) {
    const owner = node.parentElement;
    if (!node.textContent.trim() || owner.closest('.hidden, .skip, datalist')) continue;
    if (!owner.getClientRects().length) continue;
    const style = getComputedStyle(owner), below = [];
    for (let up = owner; up; up = up.parentElement) {
      below.unshift(getComputedStyle(up).backgroundColor);
    }
    const colour = owner instanceof SVGElement ? style.fill : style.color;
    const ground = luminance(painted(below)), text = luminance(painted([...below, colour]));
    const [dark, light] = [ground, text].sort((a, b) => a - b);
    const contrast = (light + 0.05) / (dark + 0.05);
    if (contrast < least) low.push(`${contrast.toFixed(2)} ${node.textContent.trim()}`);
  }
  return low;
}
"""


def check_readable(page: Page, width: int) -> None:
    """Check that all of a page, with what it folds away, fits its width and stands out."""
    page.evaluate("document.querySelectorAll('details').forEach(each => each.open = true)")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.evaluate(_TOO_WIDE) == []
    assert page.evaluate(_LOW_CONTRAST, CONTRAST) == []
    # Whatever must be scrolled sideways can be, from the keyboard, too.
    for region in page.locator(".scroll").all():
        assert region.get_attribute("tabindex") == "0"


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", WIDTHS.values(), ids=WIDTHS)
@pytest.mark.parametrize("query", ["", "?ntasks=64&time=4:00:00&scales=1"])
def test_the_page_is_readable_in_every_width_and_scheme(
    visit: Open, query: str, width: int, scheme: str
) -> None:
    page = visit(query, viewport={"width": width, "height": 800}, color_scheme=scheme)
    check_readable(page, width)
    assert page.get_by_role("heading", level=1).inner_text() == "When will my job start?"
    wait_map = page.get_by_role("region", name="Expected wait in main")
    assert wait_map.get_by_role("rowheader", name="512", exact=True).is_visible()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", WIDTHS.values(), ids=WIDTHS)
def test_the_operators_page_is_readable_in_every_width_and_scheme(
    visit: Open, width: int, scheme: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    long = f"It can't write to /var/lib/{'foretime' * 8}."
    lines = [Line(verdict.name, "Store and table", verdict, long, long) for verdict in Verdict]
    monkeypatch.setattr(operators, "refusal_lines", lambda *_: lines)
    page = visit("operators", viewport={"width": width, "height": 800}, color_scheme=scheme)
    check_readable(page, width)
    assert page.get_by_role("heading", level=1).inner_text() == "Is Foretime helping?"
    assert page.get_by_role("heading", level=2).count() == 5
    assert page.get_by_role("img", name="Share of 95% bounds that held").is_visible()
    estimators = page.get_by_role("region", name="Estimators")
    assert estimators.get_by_role("rowheader", name="combined (in use)").is_visible()
    assert page.locator(".reasons li").first.is_visible()
    for verdict in Verdict:
        assert page.get_by_text(verdict, exact=True).last.is_visible()


def test_the_operators_page_is_read_by_keyboard_and_without_script(visit: Open) -> None:
    page = visit("operators", java_script_enabled=False)
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    assert page.url.endswith("#main")
    days = page.get_by_text("Forecasts day by day")
    days.focus()
    page.keyboard.press("Enter")
    assert page.get_by_role("rowheader").first.is_visible()
    page.get_by_role("link", name="When will my job start?").click()
    page.wait_for_load_state()
    assert page.get_by_role("heading", level=1).inner_text() == "When will my job start?"


def test_the_operators_page_keeps_itself_up_to_date(visit: Open, site: MockSite) -> None:
    page = visit("operators")
    status = page.locator("[data-live=status]")
    before = status.inner_text()
    site.advance(600)
    page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
    page.wait_for_function(
        "before => document.querySelector('[data-live=status]').innerText !== before", arg=before
    )


def test_the_form_is_reached_and_sent_by_keyboard(visit: Open) -> None:
    page = visit()
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    reached = page.get_by_label("Tasks", exact=True)
    for _ in range(10):
        page.keyboard.press("Tab")
        if reached.evaluate("each => each === document.activeElement"):
            break
    outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    assert outline == "solid"
    page.keyboard.type("64")
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    page.keyboard.type("4:00:00")
    page.keyboard.press("Enter")
    page.wait_for_url("**ntasks=64**")
    # Empty fields are not asked with.
    assert page.url.split("?")[1].split("#")[0] == "ntasks=64&time=4%3A00%3A00"
    answer = page.locator(".answer")
    assert "95% sure within" in answer.inner_text()
    assert answer.is_visible()
    assert reached.input_value() == "64"


def test_a_waiting_job_has_one_line_at_a_desk(visit: Open) -> None:
    page = visit(viewport={"width": WIDTHS["desk"], "height": 800})
    heights = page.locator(".jobs tbody tr").evaluate_all("all => all.map(r => r.offsetHeight)")
    assert len(heights) > 10
    assert max(heights) <= 40
    assert page.get_by_role("columnheader", name="Slurm plans").is_visible()
    region = page.locator(".scroll:has(.jobs)")
    widths = region.evaluate("each => [each.scrollWidth, each.clientWidth]")
    assert widths[0] <= widths[1], "all columns are seen"
    ahead = page.locator(".jobs td.why", has_text="ahead").all()
    assert len(ahead) > 10
    for why in ahead:
        assert "ahead in the queue" in (why.get_attribute("title") or "")
        if why.inner_text().endswith("ahead"):  # and no more
            assert why.evaluate("each => each.scrollWidth <= each.clientWidth"), "none is cut"
    assert any(why.inner_text().endswith("ahead") for why in ahead)


def test_the_page_works_without_script(visit: Open) -> None:
    page = visit(java_script_enabled=False)
    page.get_by_label("Tasks", exact=True).fill("64")
    page.get_by_label("Time limit", exact=True).fill("4:00:00")
    page.get_by_text("More of sbatch’s options").click()
    page.get_by_label("Nodes", exact=True).fill("1")
    page.get_by_role("button").click()
    page.wait_for_load_state()
    assert "95% sure within" in page.locator(".answer").inner_text()
    listed = page.locator(".jobs").inner_text()
    page.get_by_role("link", name="After").click()
    page.wait_for_load_state()
    assert "2 of 2" in page.locator("nav").inner_text()
    assert "<img src=x onerror=alert(1)>" in listed + page.locator(".jobs").inner_text()


def test_what_is_wrong_is_said_where_it_is(browser: Browser, url: str) -> None:
    page = browser.new_page(viewport={"width": 360, "height": 800})
    page.goto(f"{url}?ntasks=64&time=soon")
    field = page.get_by_label("Time limit", exact=True)
    assert field.get_attribute("aria-invalid") == "true"
    alert = page.get_by_role("alert")
    assert "'soon': is not a duration" in alert.inner_text()
    assert alert.get_attribute("id") == field.get_attribute("aria-describedby")
    assert page.evaluate(_LOW_CONTRAST, CONTRAST) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    page.close()


def test_it_keeps_itself_up_to_date_and_the_form_as_it_is(visit: Open, site: MockSite) -> None:
    page = visit("?ntasks=8&time=60")
    page.get_by_label("Account").evaluate("each => each.closest('details').open = true")
    page.get_by_label("Account").fill("half-writ")
    status = page.locator("[data-live=status]")
    before = status.inner_text()
    site.advance(600)
    page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
    page.wait_for_function(
        "before => document.querySelector('[data-live=status]').innerText !== before", arg=before
    )
    assert page.get_by_label("Account").input_value() == "half-writ"


@pytest.mark.parametrize(
    ("zone", "name"),
    # Chromium calls it as it was once called.
    [
        ("America/New_York", "America/New_York (UTC-0"),
        ("Asia/Kolkata", "Asia/Calcutta (UTC+05:30)"),
    ],
)
def test_times_are_those_of_the_readers_clock(
    visit: Open, site: MockSite, zone: str, name: str
) -> None:
    page = visit("?ntasks=512&time=4:00:00", timezone_id=zone)
    page.wait_for_function(
        "name => document.querySelector('[data-live=zone]').textContent.startsWith(name)", arg=name
    )
    asked = ask_forecast(site.listen, "/v1/forecast", {"ntasks": "512", "time": "4:00:00"})
    read_at = page.locator("[data-live=status] time")
    moment = datetime.fromisoformat(read_at.get_attribute("datetime") or "")
    assert read_at.inner_text() == moment.astimezone(ZoneInfo(zone)).strftime("%H:%M")
    with in_zone(zone):
        said = headline(asked, site.slurm.now)
    assert said != headline(asked, site.slurm.now)
    assert page.locator(".answer .headline").inner_text().replace("\N{NO-BREAK SPACE}", " ") == said
    # The next question is asked with the zone, and answered at once in it.
    page.get_by_role("button").click()
    page.wait_for_url("**zone=**")
    assert name in page.content()
    page = visit("operators", timezone_id=zone)
    page.wait_for_function(
        "name => document.querySelector('[data-live=zone]').textContent.startsWith(name)", arg=name
    )


def test_without_script_times_are_those_of_the_machine_and_it_says_so(
    visit: Open, site: MockSite
) -> None:
    page = visit(java_script_enabled=False, timezone_id="Asia/Kolkata")
    assert page.locator("[data-live=zone]").inner_text() == zone_name(site.slurm.now)


def test_what_the_reader_has_opened_stays_open(visit: Open, site: MockSite) -> None:
    page = visit("?ntasks=8&time=60", viewport={"width": WIDTHS["phone"], "height": 800})
    for name in ("As a table", "What was assumed"):
        page.get_by_text(name).click()
    page.evaluate("document.activeElement.blur()")
    before = page.locator("[data-live=status]").inner_text()
    page.evaluate("document.querySelector('[data-live=record]').append('of before')")
    site.advance(600)
    page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
    page.wait_for_function(
        "before => document.querySelector('[data-live=status]').innerText !== before", arg=before
    )
    assert page.get_by_text("of before").count() == 0
    assert page.locator("details[open] > summary").all_inner_texts() == [
        *("What was assumed", "As a table")
    ]


def test_a_page_under_another_path_has_its_files(browser: Browser, url: str) -> None:
    """Addresses are relative: a portal serves the page below a path of its own."""
    page = browser.new_page()
    asked: list[str] = []

    def below(route: Any) -> None:
        asked.append(route.request.url)
        route.fulfill(response=route.fetch(url=route.request.url.replace("/node/foretime/", "/")))

    page.route("**/node/foretime/**", below)
    page.goto(f"{url}node/foretime/?ntasks=8&time=60")
    page.wait_for_load_state("networkidle")
    assert {each.rpartition("/")[2].partition("?")[0] for each in asked} >= {
        *("", "page.css", "page.js")
    }
    page.get_by_role("button").click()
    page.wait_for_load_state("networkidle")
    assert "/node/foretime/?ntasks=8" in page.url
    # The icon may still be on its way: that isn't idle network to the browser, but lost at close.
    page.unroute_all(behavior="ignoreErrors")
    page.close()
