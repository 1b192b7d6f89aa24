"""The viewer in Debian's Chromium, as a person uses it."""

import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from browsing import COMMAND, chromium, expect, quiet_page, serious_violations, served
from checks.synthetic_runs import make_hostile_run, make_run
from command_line import run

pytestmark = pytest.mark.slow

TASK = "birch__ledger-000001"
HOSTILE = quote("task<script>alert(1)</script>", safe="")
PAGES = {
    "runs": "#/",
    "episodes": "#/run/first",
    "episode": f"#/run/first/episode?task={TASK}&attempt=1",
    "pair": f"#/pair?a=first|{TASK}|0&b=second|{TASK}|0",
    "compare": "#/compare?a=first&b=second",
    "plots": "#/plots?runs=first,second",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    make_run(folder / "first", num_tasks=120, attempts=2)
    make_run(folder / "second", num_tasks=120, attempts=2, skill=0.6, seed=1)
    make_hostile_run(folder / "hostile", output_chars=1_000_000, num_lines=100_000)
    return folder


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[str]:
    with served(folder) as address:
        yield address


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as browser:
        yield browser


@pytest.fixture
def page(browser: Any) -> Iterator[Any]:
    with quiet_page(browser) as page:
        yield page


def rows(page: Any) -> Any:
    return page.get_by_role("table").locator("tbody tr")


def hide(page: Any, is_hidden: str) -> None:
    page.evaluate(f"""Object.defineProperty(document, 'hidden', {{
        value: {is_hidden}, configurable: true}});
        document.dispatchEvent(new Event('visibilitychange'))""")


def test_runs_lead_to_episodes_and_these_to_turns(page: Any, server: str) -> None:
    page.goto(server)
    expect(rows(page)).to_have_count(3)
    first = page.get_by_role("link", name="first", exact=True)
    expect(rows(page).filter(has_text="window.attacked")).to_contain_text("hostile")  # id and name
    first.click()
    expect(page.get_by_text("240 episodes")).to_be_visible()
    page.get_by_role("link", name=TASK).nth(1).click()
    expect(page.get_by_role("heading", name=TASK)).to_be_visible()
    expect(page.get_by_role("article").first).to_contain_text("Step 0: I look at the code")
    expect(page.get_by_role("region", name="Verdict")).to_contain_text("test_area.py::test_wide")


def test_filters_sorting_and_pages_are_in_the_address(page: Any, server: str) -> None:
    with_caveat = {"caveats": ["Not <b>comparable</b>."]}
    answer = lambda route: route.fulfill(json=route.fetch().json() | with_caveat)  # noqa: E731
    page.route("**/api/runs/first", answer)
    page.route("**/api/events", lambda route: route.fulfill(content_type="text/event-stream"))
    page.goto(f"{server}#/run/first")
    expect(page.get_by_text("Not <b>comparable</b>.")).to_be_visible()
    expect(rows(page)).to_have_count(100)
    page.get_by_role("link", name="Next").click()
    expect(page.get_by_role("status").filter(has_text="101 to 200")).to_be_visible()
    page.get_by_role("link", name="Next").click()
    expect(rows(page)).to_have_count(40)
    page.get_by_label("Repository").select_option("cedar/cache")
    page.get_by_label("Outcome").select_option("resolved")
    page.get_by_role("button", name="Tokens").click()
    page.get_by_role("button", name="Tokens").click()
    expect(page.get_by_role("columnheader", name="Tokens")).to_have_attribute(
        "aria-sort", "descending"
    )
    shown = rows(page).all_text_contents()
    assert all("cedar__cache" in row and "resolved" in row for row in shown)
    page.reload()
    expect(rows(page)).to_have_count(len(shown))
    assert rows(page).all_text_contents() == shown


def test_text_in_any_turn_finds_episodes(page: Any, server: str) -> None:
    page.goto(f"{server}#/run/first")
    page.get_by_label("Text in any turn").fill("STEP 6: i look")  # those of eight turns
    expect(page.get_by_role("status").filter(has_text="episodes")).not_to_contain_text("240")
    numbers = page.get_by_role("row").locator("td:nth-of-type(5)").all_inner_texts()
    assert set(numbers) == {"8"}


def test_gold_patch_is_displayed_on_request_only(page: Any, server: str) -> None:
    page.goto(server + PAGES["episode"])
    patch = page.get_by_role("region", name="Patch")
    expect(patch).to_contain_text("height + width")
    expect(patch).not_to_contain_text("width * height")
    page.keyboard.press("g")
    expect(patch).to_contain_text("width * height")


def test_keys_walk_through_a_run(page: Any, server: str) -> None:
    page.goto(server)
    expect(rows(page)).to_have_count(3)
    for key in ("j", "j", "k", "Enter"):
        page.keyboard.press(key)
    expect(rows(page).nth(9)).to_be_visible()
    page.keyboard.press("/")
    page.keyboard.type(TASK)
    expect(rows(page)).to_have_count(2)
    for key in ("Escape", "j", "Enter"):
        page.keyboard.press(key)
    expect(page.get_by_role("heading", name=TASK)).to_be_visible()
    page.keyboard.press("j")
    page.keyboard.press("j")
    expect(page).to_have_url(re.compile("turn="))
    first = page.url
    page.keyboard.press("]")
    expect(page).not_to_have_url(first)
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_be_hidden()
    page.keyboard.press("Escape")
    expect(rows(page)).to_have_count(2)


def test_a_link_opens_the_turn_that_it_names(page: Any, server: str) -> None:
    page.goto(f"{server}{PAGES['episode']}&turn=2")
    expect(page.get_by_role("article", name="Turn 2")).to_be_focused()


def test_two_runs_and_two_episodes_are_compared(page: Any, server: str) -> None:
    page.goto(server)
    for name in ("first", "second"):
        page.get_by_label(f"Choose {name}").check()
    page.get_by_role("button", name="Compare").click()
    expect(page.locator("[data-key=A]")).to_contain_text("hostile (<script>")
    expect(page.get_by_text("McNemar")).to_be_visible()
    for repo in ("alder/parser", "birch/ledger", "cedar/cache", "dogwood/router"):
        expect(page.get_by_text(repo).first).to_be_visible()
    page.get_by_role("table").get_by_role("link").first.click()
    expect(page.get_by_role("article").first).to_be_visible()
    page.keyboard.press("f")
    expect(page.locator("main :focus")).to_contain_text("Turn")


def test_a_running_evaluation_grows_in_the_page(page: Any, tmp_path: Path) -> None:
    with served(tmp_path) as address:
        page.goto(address)
        expect(page.get_by_text("There are no runs yet")).to_be_visible()
        page.evaluate("window.isSamePage = true")
        streams = "performance.getEntriesByName(location.origin + '/api/events').length"
        for is_hidden in ("true", "false"):  # a hidden page gives its connection back
            hide(page, is_hidden)
            page.wait_for_function(f"{streams} === 1")
        arguments = ["eval", "--agent", "gold", "-n", "6", "--out", str(tmp_path / "live")]
        with subprocess.Popen([*COMMAND, *arguments], stdout=subprocess.DEVNULL) as evaluation:
            page.get_by_role("link", name="live", exact=True).click(timeout=60_000)
            expect(page.get_by_text("6 episodes")).to_be_visible(timeout=60_000)
            expect(page.get_by_text("6 of 6")).to_be_visible(timeout=60_000)
        assert evaluation.returncode == 0
        page.evaluate("location.hash = '#/'")
        expect(rows(page)).to_have_count(1)
        hide(page, "true")
        shutil.rmtree(tmp_path / "live")
        while page.request.get(f"{address}api/runs").json()["runs"]:
            page.wait_for_timeout(100)
        hide(page, "false")
        expect(page.get_by_text("There are no runs yet")).to_be_visible()
        assert page.evaluate("window.isSamePage")


@pytest.mark.parametrize("name", PAGES)
def test_axe_finds_nothing_serious_in_light_and_dark(page: Any, server: str, name: str) -> None:
    page.goto(server + PAGES[name])
    expect(page.get_by_role("heading", level=1)).to_be_visible()
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        colour = page.evaluate("getComputedStyle(document.body).color").strip("rgb()")
        assert (sum(map(int, colour.split(","))) < 384) == (scheme == "light")
        assert serious_violations(page) == []


@pytest.mark.parametrize("name", PAGES)
def test_phone_widths_need_no_sideways_scrolling(page: Any, server: str, name: str) -> None:
    page.set_viewport_size({"width": 360, "height": 740})
    page.goto(server + PAGES[name])
    expect(page.get_by_role("heading", level=1)).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= 360


def test_hostile_content_stays_inert(page: Any, server: str) -> None:
    for place in (
        "#/",
        "#/run/hostile",
        f"#/run/hostile/episode?task={HOSTILE}&attempt=0",
        f"#/pair?a=hostile|{HOSTILE}|0&b=hostile|{HOSTILE}|1",
    ):
        page.goto(server + place)
        expect(page.get_by_role("heading", level=1)).to_be_visible()
        page.evaluate("for (const fold of document.querySelectorAll('details')) fold.open = true")
        assert page.evaluate("window.attacked") is None
        assert page.locator("main :is(script, iframe, img, style, meta, base, object)").count() == 0
        assert page.locator("a:not([href^='#'])").count() == 0
        text = page.locator("body").inner_text()
        assert not set("\u202e\u2066\x1b\x07\x9b\u200b") & set(text)
    page.goto(f"{server}#/run/hostile/episode?task={HOSTILE}&attempt=0")
    expect(page.get_by_role("navigation", name="Sections")).to_be_visible()
    expect(page.get_by_text("\u2039U+202E\u203a").first).to_be_visible()
    turn = page.get_by_role("article", name="Turn 6")
    output = turn.locator(".output").first
    expect(output).to_contain_text("\u2039U+001B\u203a]0;title\u2039U+0007\u203a")
    expect(output).not_to_contain_text("[2J")
    turn.get_by_text("Raw action").click()
    expect(turn.locator("pre").last).to_contain_text("\u2039U+001B\u203a[2J")
    red = page.get_by_role("article").get_by_text("red", exact=True).first
    channels = red.evaluate("node => getComputedStyle(node).color").strip("rgb()").split(",")
    assert int(channels[0]) > int(channels[1]) + 50


def test_large_outputs_are_displayed_piece_by_piece(page: Any, server: str) -> None:
    page.goto(f"{server}#/run/hostile/episode?task={HOSTILE}&attempt=1")
    turn = page.get_by_role("article").first
    expect(turn).to_contain_text("cat log")
    before = len(turn.inner_text())
    assert before <= 20_500
    for _ in range(3):
        turn.get_by_role("button", name="Show more").click()
        expect(turn.get_by_role("button", name="Show more")).to_be_enabled()
        after = len(turn.inner_text())
        assert 0 < after - before <= 20_500
        before = after


def test_a_report_works_from_disk_without_network(
    browser: Any, folder: Path, tmp_path: Path
) -> None:
    report = tmp_path / "report.html"
    run("view", folder / "first", folder / "second", folder / "hostile", "--static", report)
    with quiet_page(browser, offline=True) as page:
        for place in PAGES.values():
            page.goto(report.as_uri() + place)
            expect(page.get_by_role("heading", level=1)).to_be_visible()
        page.goto(f"{report.as_uri()}#/run/first")
        page.get_by_label("Outcome").select_option("resolved")
        page.get_by_label("Text in any turn").fill("step 6: i look")
        expect(page.get_by_role("status").filter(has_text="episodes")).not_to_contain_text("240")
        search = page.get_by_label("Text in any turn")
        for text in ("tep 6: i look", "tool_calls"):  # the end of a word; no text of a turn
            search.fill(text)
            expect(rows(page)).to_have_count(0)
        search.fill("1 FAILED")  # with a colour before the number
        expect(rows(page)).not_to_have_count(0)
        rows(page).first.get_by_role("link").click()
        expect(page.get_by_role("article").first).to_contain_text("Step 0")
        page.keyboard.press("g")
        expect(page.get_by_role("region", name="Patch")).to_contain_text("width * height")
        page.goto(f"{report.as_uri()}#/run/hostile/episode?task={HOSTILE}&attempt=1")
        turn = page.get_by_role("article").first
        expect(turn).to_contain_text("cat log")
        while (more := turn.get_by_role("button", name="Show more")).is_visible():
            more.click()
        expect(turn).to_contain_text("980,000 more characters are not in this report")
        assert page.evaluate("window.attacked") is None
