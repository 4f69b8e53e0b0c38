"""Other sites' pages in a headless Chromium, whose user has forwarded a port to the daemon."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest
from foretime_sidecar.answers.daemon_client import SiteDaemon
from foretime_sim.mocks.slurm.mock_slurm import MockSlurm
from foretime_sim.mocks.slurm.slurm_job import SlurmSetup, Submission
from foretime_sim.policies.policy import Policy

from tests.support.processes.socket_bridge import SocketBridge
from tests.support.slurm.mock_site import MockSite

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page, Route

NOW = 1_700_000_000
HEADERS = {"X-Requested-With": "foretime", "X-Foretime-Token": "0.0"}
# Everything that a page can have a browser send; gives how many could be read, and what a token is.
ATTACK = """
async ([daemon, headers]) => {
  const read = [];
  const target = `${daemon}/v1/me/forget?user=ann`;
  const asked = [
    [target, {method: "POST"}],
    [target, {method: "POST", mode: "no-cors"}],
    [target, {method: "POST", headers}],
    [target, {method: "POST", body: "a=b", mode: "no-cors"}],
    [`${daemon}/v1/me?user=ann`, {}],
    [`${daemon}/v1/jobs/forecasts`, {}],
    [`${daemon}/v1/forecast?ntasks=4&time=60`, {mode: "no-cors"}],
    [`${daemon}/v1/token`, {}],
    [`${daemon}/v1/operators`, {}],
    [`${daemon}/operators`, {}],
    [`${daemon}/v1/me/notify`, {}],
  ];
  for (const [url, options] of asked) {
    try {
      const reply = await fetch(url, options);
      if (reply.ok) read.push(url);
      if (reply.ok && url.endsWith("/v1/token")) {
        const {token} = await reply.json();
        const used = {"X-Foretime-Token": token, ...headers, "X-Foretime-Token": token};
        if ((await fetch(target, {method: "POST", headers: used})).ok) read.push("erased");
      }
    } catch { /* the browser would not */ }
  }
  const loaded = async (name, address) => {
    const element = document.createElement(name);
    const done = new Promise((resolve) => {
      element.onload = () => resolve(true);
      element.onerror = () => resolve(false);
      setTimeout(resolve, 5000, false);
    });
    element.src = address;
    document.body.append(element);
    if (await done) read.push(name);
  };
  await loaded("img", `${daemon}/static/icon.svg`);
  await loaded("script", `${daemon}/static/page.js`);
  navigator.sendBeacon(target, "a=b");
  return read;
}
"""
FORM = """
<form method="post" action="{daemon}/v1/me/forget?user=ann" enctype="text/plain">
<input name="a" value="b"><button>Win</button></form>
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MockSite]:
    """Its own user, who is this one and may erase anybody, has forwarded the port."""
    slurm = MockSlurm(SlurmSetup(64), Policy(), None, NOW)
    slurm.submit(Submission("ann", "p", None, 64, 7200, 5400))
    slurm.submit(Submission("bob", "p", None, 4, 7200, 5400))
    slurm.advance(NOW + 60)
    with MockSite(tmp_path_factory.mktemp("other"), slurm) as site:
        yield site


@pytest.fixture
def port(site: MockSite) -> Iterator[int]:
    with SocketBridge(site.socket_path) as bridge:
        yield bridge.port


def visited(browser: Browser, address: str, html: str) -> Page:
    """Show a page of somebody else's at an address, from where all else is the daemon's."""
    page = browser.new_context(permissions=[]).new_page()

    def shown(route: Route) -> None:
        route.fulfill(body=f"<!doctype html><body>{html}", content_type="text/html")

    page.route(address, shown)
    page.goto(address)
    return page


def left_alone(site: MockSite) -> bool:
    mine: dict[str, Any] = SiteDaemon(site.listen).ask("/v1/me", {"user": "ann"})
    stored = json.dumps(mine["served_forecasts"])
    return mine["forgotten_at"] is None and "what-if" not in stored


def test_a_name_that_now_leads_here_is_refused(browser: Browser, site: MockSite, port: int) -> None:
    """DNS rebinding: to the browser the daemon is the page's own server."""
    page = visited(browser, f"http://evil.example:{port}/attack", "")
    assert page.evaluate(ATTACK, [f"http://evil.example:{port}", HEADERS]) == []
    reply = page.goto(f"http://evil.example:{port}/")
    assert reply is not None
    assert reply.status == 421
    assert left_alone(site)


@pytest.mark.parametrize("host", ["http://other.example:1234", "http://localhost:1234"])
def test_another_sites_page_reads_and_changes_nothing(
    browser: Browser, site: MockSite, port: int, host: str
) -> None:
    page = visited(browser, f"{host}/attack", "")
    assert page.evaluate(ATTACK, [f"http://localhost:{port}", HEADERS]) == []
    assert left_alone(site)


@pytest.mark.parametrize("host", ["http://other.example:1234", "http://localhost:1234"])
def test_another_sites_form_is_refused(
    browser: Browser, site: MockSite, port: int, host: str
) -> None:
    page = visited(browser, f"{host}/form", FORM.format(daemon=f"http://localhost:{port}"))
    with page.expect_navigation() as navigation:
        page.click("button")
    assert navigation.value.status in (403, 413)
    assert left_alone(site)


def test_a_link_to_the_operators_page_is_followed(
    browser: Browser, site: MockSite, port: int
) -> None:
    link = f'<a href="http://localhost:{port}/operators">Is it helping?</a>'
    page = visited(browser, "http://other.example:1234/link", link)
    page.click("a")
    page.wait_for_selector(".lines")
    assert left_alone(site)


def test_a_link_is_followed(browser: Browser, site: MockSite, port: int) -> None:
    link = f'<a href="http://localhost:{port}/?ntasks=4&time=60">When?</a>'
    page = visited(browser, "http://other.example:1234/link", link)
    page.click("a")
    page.wait_for_selector("h1")
    assert "sure within" in page.content()
    assert left_alone(site)


def test_its_own_page_may_do_all(browser: Browser, site: MockSite, port: int) -> None:
    """What the attacks are, where nothing is in their way."""
    page = browser.new_page()
    page.goto(f"http://localhost:{port}/")
    read = page.evaluate(ATTACK.replace("user=ann", "user=zoe"), [f"http://localhost:{port}", {}])
    assert {"erased", "img", "script"} <= set(read)
    assert {each.rpartition("/")[2] for each in read} >= {"operators", "notify"}
    assert len(read) >= 9
    assert left_alone(site)
