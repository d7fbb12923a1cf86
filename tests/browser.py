"""A real browser, and what a page is held to in it."""

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import files
from typing import Any

from tests.servers import find_server

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


@contextmanager
def open_browser(scheme: str) -> Iterator[Any]:
    """Chromium that prefers `light` or `dark`; without it the test is a named skip."""
    driver = find_server("chromedriver")
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    for name in ("headless", "no-sandbox", "disable-gpu", "disable-background-networking"):
        options.add_argument(f"--{name}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    opened = webdriver.Chrome(options, webdriver.ChromeService(driver))
    media = [{"name": "prefers-color-scheme", "value": scheme}]
    opened.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": media})
    opened.execute_cdp_cmd("Page.setBypassCSP", {"enabled": True})  # axe is no part of the page
    try:
        yield opened
    finally:
        opened.quit()


def wait_for(browser: Any, heading: str) -> dict[str, Any]:
    """What is seen once the page shows a view with this heading."""
    from selenium.webdriver.support.wait import WebDriverWait

    def look(driver: Any) -> Any:
        seen = driver.execute_script(_SEEN)
        is_done = seen["busy"] != "true" and seen["heading"] == heading
        return seen if is_done else None

    found: dict[str, Any] = WebDriverWait(browser, 60).until(look)
    return found


def check_view(
    browser: Any, address: str, heading: str, host: str, widths: tuple[int, ...] = WIDTHS
) -> list[str]:
    """Holds a view to these widths, its own host and axe's rules; the errors that are logged."""
    for width in widths:
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 640}
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        browser.get("about:blank")
        browser.get(address)
        seen = wait_for(browser, heading)
        assert seen["overflow"] <= 0, width
        assert {*seen["hosts"]} <= {host}
        script = files("axe_core_python").joinpath("axe.min.js").read_text("utf-8")
        browser.execute_script(script)
        found = browser.execute_async_script(_AXE)
        assert not [one["id"] for one in found if one["impact"] in ("serious", "critical")], width
    return [line["message"] for line in browser.get_log("browser") if line["level"] == "SEVERE"]
