"""The page in a real browser, of the service and as a site: it works by keyboard, asks no host."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from query import make_warehouse

from kpyramid.snapshot.export import export
from kpyramid.snapshot.snapshot import open_snapshot
from kpyramid.storage.layout import Warehouse
from tests.browser import WIDTHS, check_view, open_browser, wait_for
from tests.corpora import share
from tests.rows import read_bodies
from tests.test_serve import SECRET, Client, built, client

__all__ = ["built", "client"]  # fixtures

pytestmark = [pytest.mark.needs("serve"), pytest.mark.slow]

VIEWS = read_bodies("page.views")


@pytest.fixture(scope="module")
def site(built: Path) -> Path:
    """The folder of an exported site."""

    def make(folder: Path) -> None:
        snapshot = open_snapshot("main", built / "warehouse")
        export(snapshot, "site", folder / "site", Warehouse(built / "warehouse"), ref="main")

    return share("site", make) / "site"


@pytest.fixture(scope="module", params=["light"])
def browser(request: pytest.FixtureRequest) -> Iterator[Any]:
    with open_browser(request.param) as opened:
        yield opened


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize(
    ("browser", "widths"), [("light", WIDTHS), ("dark", WIDTHS[1:2])], indirect=["browser"]
)
def test_views_show_at_every_width(
    client: Client, browser: Any, widths: tuple[int, ...], view: str
) -> None:
    host = f"127.0.0.1:{client.port}"
    logged = check_view(browser, f"http://{host}/{view}", VIEWS[view], host, widths)
    assert not logged or "nobody" in view, logged  # a browser notes every reply without success


@pytest.mark.parametrize("view", VIEWS)
def test_a_site_shows_the_same_from_a_folder(site: Path, browser: Any, view: str) -> None:
    address = f"{(site / 'index.html').as_uri()}{view}"
    assert check_view(browser, address, VIEWS[view], "", WIDTHS[:1]) == []


SAID = read_bodies("page.said")


@pytest.mark.parametrize("view", SAID)
def test_a_site_says_which_sentence_says_so(site: Path, browser: Any, view: str) -> None:
    browser.get("about:blank")
    browser.get(f"{(site / 'index.html').as_uri()}{view}")
    heading = "Changes" if view == "#changes" else view.partition("=")[2]
    wait_for(browser, heading.replace("%20", " ").replace("%3F", "?"))
    open_all = "document.querySelectorAll('details').forEach((one) => { one.open = true; });"
    browser.execute_script(open_all)
    read = "return document.querySelector('main').textContent"
    from selenium.webdriver.support.wait import WebDriverWait

    WebDriverWait(browser, 20).until(lambda driver: SAID[view] in driver.execute_script(read))


def test_a_site_has_nothing_of_what_has_labels(site: Path) -> None:
    written = b"".join(path.read_bytes() for path in site.rglob("*.js"))
    assert b"Leeds" in written and SECRET.encode() not in written


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


def test_a_view_of_five_thousand_things_is_no_larger(browser: Any, tmp_path: Path) -> None:
    make_warehouse(tmp_path / "warehouse", 10_000, seed=0)
    snapshot = open_snapshot("main", tmp_path / "warehouse")
    assert len(snapshot.names) >= 5_000
    export(snapshot, "site", tmp_path / "site", Warehouse(tmp_path / "warehouse"), ref="main")
    ends = Counter(snapshot.table("condensed")["head_id"].to_pylist())
    name = snapshot.names[max(ends, key=lambda key: ends[key])]
    question = f"Where was {name} born?"
    assert max(path.stat().st_size for path in (tmp_path / "site").rglob("*.js")) < 1_000_000
    views = {"": "What is in it", f"#entity={quote(name)}": name, f"#q={quote(question)}": question}
    for view, heading in views.items():
        browser.get("about:blank")
        browser.get(f"{(tmp_path / 'site' / 'index.html').as_uri()}{view}")
        wait_for(browser, heading)
        drawn = browser.execute_script("return document.querySelectorAll('*').length")
        assert 50 < drawn < 2_000, view
