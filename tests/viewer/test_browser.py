"""The live viewer in Chromium."""

import re
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from runs import TASK, make_hostile_run, make_run
from sandbox_fixtures import wait_until

from coding_gym.run_folder import RunFolder
from coding_gym.trajectory import Trajectory

pytestmark = pytest.mark.nightly
COMMAND = (sys.executable, "-c", "from coding_gym.cli.app import main; main()")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    make_run(folder / "first", num_tasks=60)
    make_run(folder / "second", num_tasks=60, skill=4)
    make_hostile_run(folder / "hostile")
    return folder


@pytest.fixture(scope="module")
def page(folder: Path) -> Iterator[Any]:
    """A browser page of the served folder; JavaScript errors fail the tests."""
    sync_api = pytest.importorskip("playwright.sync_api")
    if (program := shutil.which("chromium")) is None:
        pytest.skip("needs Debian's chromium")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    command = [*COMMAND, "view", str(folder), "--port", port, "--no-open"]
    command += ["--tasks", str(folder / "first-tasks.jsonl")]
    problems: list[str] = []
    with (
        subprocess.Popen(command, stdout=subprocess.PIPE) as server,
        sync_api.sync_playwright() as playwright,
    ):
        assert server.stdout is not None
        server.stdout.readline()
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        page = browser.new_page(base_url=f"http://127.0.0.1:{port}")
        page.on("console", lambda entry: entry.type == "error" and problems.append(entry.text))
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on("dialog", lambda dialog: problems.append(dialog.message))
        try:
            yield page
        finally:
            browser.close()
            server.terminate()
    assert not problems


def test_filters_search_and_pages_are_in_the_address(page: Any) -> None:
    page.goto("/#/run/first")
    page.get_by_text("1 to 100 of 120 episodes").wait_for()
    page.get_by_role("link", name="Next").click()
    page.get_by_text("101 to 120").wait_for()
    page.get_by_label("Repository").select_option("cedar/cache")
    page.get_by_label("Text in any turn").fill("STEP 5: i look")
    page.wait_for_url(re.compile("repo=cedar.*text=STEP"))
    page.get_by_role("button", name="Tokens").click()
    page.reload()
    page.locator("[aria-sort=ascending]").wait_for()
    texts = page.locator("tbody tr").all_text_contents()
    assert texts
    assert all("cedar__cache" in text for text in texts)
    assert {*page.locator("td:nth-of-type(5)").all_inner_texts()} <= {"7", "8"}


def test_keys_navigate_from_runs_to_turns(page: Any) -> None:
    page.goto("/#/")
    page.get_by_role("link", name="first", exact=True).click()
    page.get_by_text("120 episodes").wait_for()
    for key in ("j", "j", "k", "Enter"):
        page.keyboard.press(key)
    page.locator("article").first.wait_for()
    page.keyboard.press("j")
    page.wait_for_url(re.compile("turn="))
    page.keyboard.press("]")
    page.wait_for_url(re.compile("attempt=1"))
    page.keyboard.press("Escape")
    page.get_by_text("120 episodes").wait_for()


def test_gold_patch_is_displayed_on_request(page: Any) -> None:
    page.goto(f"/#/run/first/episode?task={TASK}&attempt=1")
    patch = page.get_by_role("region", name="Patch")
    patch.get_by_text("width - height").wait_for()
    assert "width * height" not in patch.inner_text()
    page.keyboard.press("g")
    patch.get_by_text("width * height").wait_for()


def test_runs_and_episodes_are_compared(page: Any) -> None:
    page.goto("/#/")
    page.get_by_role("link", name="Compare two").click()
    for label, name in (("A", "first"), ("B", "second")):
        page.locator(f"[data-key={label}]").select_option(name)
        page.locator(f"option[value={name}][selected]").wait_for(state="attached")
    page.get_by_text("McNemar").wait_for()
    page.goto(f"/#/pair?a=first|{TASK}|0&b=second|{TASK}|1")
    page.get_by_role("button", name="First difference: turn 3").wait_for()
    page.keyboard.press("f")
    page.locator("[data-item]:focus").wait_for()


def longer_text(turn: Any, length: int) -> str:
    """Returns a turn's text if longer than ``length``, else ""; the CSP forbids page-side waits."""
    text: str = turn.inner_text()
    return text if len(text) > length else ""


def test_large_outputs_are_displayed_in_pieces(page: Any) -> None:
    page.goto("/#/run/hostile")
    page.get_by_role("link", name="task<script>").last.click()
    turn = page.locator("article").first
    for _ in range(3):
        before = len(turn.inner_text())
        turn.get_by_role("button", name="Show more").click()
        after = wait_until(partial(longer_text, turn, before))
        assert len(after) - before <= 20_500


def test_new_attempts_appear_while_the_page_is_open(page: Any, folder: Path) -> None:
    page.goto("/#/run/second")
    page.get_by_text("of 120 episodes").wait_for()
    lost = Trajectory(task_id="new", error="lost", error_class="sandbox")
    RunFolder.open(folder / "second").add(lost)
    page.get_by_text("of 121 episodes").wait_for()
    page.get_by_text("1 sandbox").wait_for()
