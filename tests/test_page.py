"""The page of the service in a real browser: it shows, works by keyboard, asks no other host."""

import os
import shutil
from collections.abc import Iterator
from importlib.resources import files
from typing import Any

import pytest

from tests.test_serve import Client, built, make_limits, serve

__all__ = ["built"]  # a fixture

pytestmark = [pytest.mark.needs("serve"), pytest.mark.slow]

VIEWS = {
    "": "What is in it",
    "#ontology": "Ontology",
    "#q=Where%20was%20John%20Harlow%20born%3F": "Where was John Harlow born?",
    "#entity=John%20Harlow": "John Harlow",
    "#entity=nobody%20at%20all": "This could not be shown",
    "#changes": "Changes",
}
WIDTHS = (360, 1000, 1600)
_SEEN = """
    const hosts = performance.getEntriesByType("resource").map((one) => new URL(one.name).host);
    return {
        heading: document.querySelector("main h1")?.textContent,
        busy: document.querySelector("main").getAttribute("aria-busy"),
        overflow: document.documentElement.scrollWidth - innerWidth,
        hosts: [...new Set(hosts)],
    };
"""
_AXE = "const done = arguments[arguments.length - 1]; axe.run().then((r) => done(r.violations));"


@pytest.fixture(scope="module")
def client(built: Any) -> Iterator[Client]:
    with serve(built / "warehouse", make_limits()) as served:
        yield served


@pytest.fixture(scope="module", params=["light", "dark"])
def browser(request: pytest.FixtureRequest) -> Iterator[Any]:
    driver = shutil.which("chromedriver")
    if driver is None:
        assert "CI" not in os.environ, "CI needs Debian's chromium and chromium-driver"
        pytest.skip("chromium and chromedriver are not installed")
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    for name in ("headless", "no-sandbox", "disable-gpu", "disable-background-networking"):
        options.add_argument(f"--{name}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    opened = webdriver.Chrome(options, webdriver.ChromeService(driver))
    media = [{"name": "prefers-color-scheme", "value": request.param}]
    opened.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": media})
    opened.execute_cdp_cmd("Page.setBypassCSP", {"enabled": True})  # axe is no part of the page
    yield opened
    opened.quit()


def wait_for(browser: Any, heading: str) -> dict[str, Any]:
    from selenium.webdriver.support.wait import WebDriverWait

    def look(driver: Any) -> Any:
        seen = driver.execute_script(_SEEN)
        return seen if seen["busy"] == "false" and seen["heading"] == heading else None

    found: dict[str, Any] = WebDriverWait(browser, 60).until(look)
    return found


@pytest.mark.parametrize("view", VIEWS)
def test_views_show_at_every_width(client: Client, browser: Any, view: str) -> None:
    address = f"http://127.0.0.1:{client.port}/"
    for width in WIDTHS:
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 640}
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        browser.get("about:blank")
        browser.get(address + view)
        seen = wait_for(browser, VIEWS[view])
        assert seen["overflow"] <= 0, width
        assert {*seen["hosts"]} <= {f"127.0.0.1:{client.port}"}
    script = files("axe_core_python").joinpath("axe.min.js").read_text("utf-8")
    browser.execute_script(script)
    found = browser.execute_async_script(_AXE)
    assert not [one["id"] for one in found if one["impact"] in ("serious", "critical")]
    refused = "nobody" in view  # a browser notes every reply that is no success
    said = [line["message"] for line in browser.get_log("browser") if line["level"] == "SEVERE"]
    assert not said or refused, said


def test_it_works_by_keyboard_and_shows_names_as_they_are(client: Client, browser: Any) -> None:
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.keys import Keys

    browser.get(f"http://127.0.0.1:{client.port}/")
    wait_for(browser, "What is in it")
    ActionChains(browser).send_keys(
        Keys.TAB * 3, "Who was founded by Nils Vik?", Keys.ENTER
    ).perform()
    wait_for(browser, "Who was founded by Nils Vik?")
    text = browser.execute_script("return document.querySelector('main').textContent")
    assert "<script>alert(1)</script>" in text
    browser.get(f"http://127.0.0.1:{client.port}/#")
    wait_for(browser, "What is in it")
    link = "document.querySelector('main section.graph a')"
    name = browser.execute_script(f"{link}.focus(); return {link}.textContent")
    ActionChains(browser).send_keys(Keys.ENTER).perform()
    wait_for(browser, name)
