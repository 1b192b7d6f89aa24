"""Speed and memory of the viewer in Debian's Chromium.

    python benchmarks/bench_viewer.py --episodes 10000 100000

``first_row_s`` and ``first_turn_s``: from the request for the page of a run, or of an episode, to
its first row or turn on the screen; ``new`` where the run has no index yet and the server has just
started, ``known`` where it has one. ``server_mb`` is the largest resident size of the server once
the index is complete. ``longest_block_ms`` is the longest task of the page's main thread while an
episode with 50 MB of output and a million lines is opened and unfolded piece by piece;
``hostile_server_mb`` the server's size then. ``static_mb`` is the size of the one-file report of
100 episodes, ``content_mb`` that of their records, ``packed_mb`` that of the pages as they are
compressed in the file, and ``beyond_mb`` all the rest of it.
"""

import base64
import json
import os
import re
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

from checks.synthetic_runs import make_hostile_run, make_run
from figures import Figure, parser, report
from playwright.sync_api import sync_playwright

from coding_gym.viewer.one_file import write_static_report

_COMMAND = (sys.executable, "-c", "from coding_gym.cli.app import main; main()", "view")
_OBSERVER = """
window.blocks = [];
new PerformanceObserver((list) => {
  for (const entry of list.getEntries()) window.blocks.push(entry.duration);
}).observe({ type: "longtask", buffered: true });
"""


def main() -> None:
    """Measures, shows and keeps the figures."""
    made = parser(__doc__, rounds=None)
    made.add_argument("--episodes", type=int, nargs="*", default=[10_000, 100_000])
    made.add_argument("--chromium", default="/usr/bin/chromium")
    options = made.parse_args()
    found: dict[str, dict[str, float]] = {}
    with tempfile.TemporaryDirectory() as name, sync_playwright() as playwright:
        folder = Path(name)
        os.environ["XDG_CACHE_HOME"] = name  # the indexes go with the runs
        browser = playwright.chromium.launch(
            executable_path=options.chromium, args=["--no-sandbox"]
        )
        for num_episodes in options.episodes:
            run = make_run(folder / f"run-{num_episodes}", num_episodes // 10, 10)
            found[f"{num_episodes:,} episodes"] = large_run(browser, run, num_episodes)
        found["hostile run"] = hostile_run(browser, make_hostile_run(folder / "hostile"))
        found["static report"] = static_report(make_run(folder / "hundred", 100), folder)
        browser.close()
    figures = [
        Figure(name=f"{title}: {name}", value=value)
        for title, values in found.items()
        for name, value in values.items()
    ]
    report("viewer", figures, options)


@contextmanager
def server(run: Path) -> Iterator[tuple[str, int, float]]:
    """Serves a run; yields the address, the process id, and the seconds until it listened."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    began = time.perf_counter()
    command = [*_COMMAND, str(run), "--port", str(port), "--no-open"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        process.stdout.readline()
        try:
            yield f"http://127.0.0.1:{port}/", process.pid, time.perf_counter() - began
        finally:
            process.terminate()


def peak_mb(pid: int) -> float:
    """Returns the largest resident size that a process has had."""
    status = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    found = re.search(r"VmHWM:\s+(\d+) kB", status)
    assert found is not None
    return round(int(found[1]) / 1024, 1)


def seconds_until(page: Any, address: str, selector: str) -> float:
    """Returns how long it takes from a request to an element on the screen."""
    page.goto("about:blank")
    began = time.perf_counter()
    page.goto(address)
    page.locator(selector).first.wait_for()
    return round(time.perf_counter() - began, 3)


def large_run(browser: Any, run: Path, num_episodes: int) -> dict[str, float]:
    """Returns the figures of a run of many episodes."""
    figures: dict[str, float] = {}
    episode = f"#/run/{run.name}/episode?task=birch__ledger-000001&attempt=0"
    with browser.new_context() as context:
        page = context.new_page()
        for kind in ("new", "known"):
            with server(run) as (address, pid, start_s):
                place = f"{address}#/run/{run.name}"
                figures[f"{kind}_server_start_s"] = round(start_s, 3)
                figures[f"{kind}_first_row_s"] = seconds_until(page, place, "tbody tr")
                figures[f"{kind}_first_turn_s"] = seconds_until(page, address + episode, "article")
                began = time.perf_counter()
                while (summary := context.request.get(f"{address}api/runs/{run.name}").json())[
                    "done"
                ] + summary["num_errors"] < num_episodes or summary["indexed"] < 1:
                    time.sleep(0.5)
                figures[f"{kind}_index_s"] = round(time.perf_counter() - began, 1)
                figures[f"{kind}_row_of_whole_index_s"] = seconds_until(page, place, "tbody tr")
                found = f"{place}?text=step%206"
                figures[f"{kind}_search_s"] = seconds_until(page, found, "tbody tr")
                figures[f"{kind}_server_mb"] = peak_mb(pid)
    return figures


def hostile_run(browser: Any, run: Path) -> dict[str, float]:
    """Returns the longest block of the main thread, and the memory of the server."""
    task = quote("task<script>alert(1)</script>", safe="")
    with server(run) as (address, pid, _), browser.new_context() as context:
        context.add_init_script(_OBSERVER)
        page = context.new_page()
        place = f"{address}#/run/hostile/episode?task={task}&attempt="
        first_turn_s = seconds_until(page, f"{place}1", "article")
        clicks = 0
        for _ in range(20):
            for more in page.get_by_role("button", name="Show more").all():
                more.click()
                clicks += 1
        page.evaluate("scrollTo(0, document.body.scrollHeight)")
        page.wait_for_timeout(500)
        blocks = page.evaluate("window.blocks")
        seconds_until(page, f"{place}0", "article")
        page.evaluate("for (const fold of document.querySelectorAll('details')) fold.open = true")
        page.wait_for_timeout(500)
        blocks += page.evaluate("window.blocks")
        return {
            "first_turn_s": first_turn_s,
            "pieces": clicks,
            "longest_block_ms": round(max(blocks, default=0.0)),
            "hostile_server_mb": peak_mb(pid),
        }


def static_report(run: Path, folder: Path) -> dict[str, float]:
    """Returns the size of a report and of the records in it."""
    path = folder / "report.html"
    write_static_report([run], path)
    document = path.read_text(encoding="utf-8")
    embedded = document.partition('id="embedded">')[2].partition("</script>")[0]
    packed = sum(len(base64.b64decode(page)) for page in json.loads(embedded).values())
    content = sum(file.stat().st_size for file in run.glob("*.jsonl"))
    return {
        "static_mb": round(len(document) / 1e6, 2),
        "content_mb": round(content / 1e6, 2),
        "packed_mb": round(packed / 1e6, 2),
        "beyond_mb": round((len(document) - packed) / 1e6, 2),
    }


if __name__ == "__main__":
    main()
