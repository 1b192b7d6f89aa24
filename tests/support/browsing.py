"""The viewer as a process of its own, and Debian's Chromium to look at it."""

import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

COMMAND = (sys.executable, "-c", "from coding_gym.cli.app import main; main()")
_OWN = ("http://127.0.0.1:", "file://", "data:")


@contextmanager
def served(*runs: Path) -> Iterator[str]:
    """Runs ``coding-gym view`` and yields its address."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [*COMMAND, "view", *map(str, runs), "--port", str(port), "--no-open"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            said = server.stdout.readline()
            assert str(port) in said, said
            yield f"http://127.0.0.1:{port}/"
        finally:
            server.terminate()


@contextmanager
def chromium() -> Iterator[Any]:
    """Yields the browser; without it, or without Playwright, the test is skipped."""
    program = shutil.which("chromium")
    if program is None:
        pytest.skip("needs Debian's chromium")
    sync_api = pytest.importorskip("playwright.sync_api")
    sync_api.expect.set_options(timeout=30_000)  # the machine may be busy
    with sync_api.sync_playwright() as playwright:
        # Chromium's own sandbox does not start as root.
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def quiet_page(browser: Any, **options: Any) -> Iterator[Any]:
    """Yields a page that must log no error, open no dialog and ask no other server for anything."""
    problems: list[str] = []
    with browser.new_context(**options) as context:
        context.set_default_timeout(30_000)
        page = context.new_page()
        page.on("console", lambda said: said.type == "error" and problems.append(said.text))
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on("dialog", lambda dialog: problems.append(f"a dialog: {dialog.message}"))
        page.on("request", lambda sent: sent.url.startswith(_OWN) or problems.append(sent.url))
        page.on("popup", lambda _: problems.append("a window was opened"))
        page.on("download", lambda _: problems.append("a file was downloaded"))
        yield page
        assert not problems, problems


def expect(locator: Any) -> Any:
    """Returns Playwright's assertions on a locator or a page."""
    from playwright.sync_api import expect

    return expect(locator)


def serious_violations(page: Any) -> Sequence[str]:
    """Returns what axe finds serious or critical on a page."""
    from axe_playwright_python.sync_playwright import Axe

    return [
        f"{found['id']}: {found['nodes'][0]['html'][:200]}"
        for found in Axe().run(page).response["violations"]
        if found["impact"] in ("serious", "critical")
    ]
