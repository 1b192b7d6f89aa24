"""``coding-gym view --static``: the HTML file, and its display in Chromium."""

import base64
import gzip
import hashlib
import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from runs import GOLD, HOSTILE_TASK, TASK, make_hostile_run, make_run

from coding_gym.viewer.one_file import write_static_report
from coding_gym.whole_file import write_output


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    make_run(folder / "first", num_tasks=8)
    make_run(folder / "second", num_tasks=8, skill=4)
    make_hostile_run(folder / "hostile", num_chars=200_000)
    assert (
        write_static_report([folder], folder / "report.html", [str(folder / "first-tasks.jsonl")])
        == 34
    )
    return folder / "report.html"


def embedded(report: Path) -> dict[str, Any]:
    document = report.read_text(encoding="utf-8")
    (content,) = re.findall(r'id="embedded">(.*?)</script>', document, re.DOTALL)
    return {
        address: json.loads(gzip.decompress(base64.b64decode(packed)))
        for address, packed in json.loads(content).items()
    }


def test_report_holds_every_page(report: Path) -> None:
    pages = embedded(report)
    assert {"api/runs", "api/compare?a=second&b=first"} <= pages.keys()
    assert len(pages["api/runs/first/episodes"]["episodes"]) == 16
    episode = pages[f"api/runs/first/episode?task={TASK}&attempt=1"]
    assert episode["gold"] == GOLD
    assert pages["api/runs"]["runs"][0]["indexed"] == 1


def test_report_loads_nothing_and_runs_only_its_script(report: Path) -> None:
    document = report.read_text(encoding="utf-8")
    (policy,) = re.findall(r'http-equiv="Content-Security-Policy" content="(.*?)"', document)
    assert policy.startswith("default-src 'none'; ")
    for element, directive in (('script type="module"', "script"), ("style", "style")):
        name = element.split()[0]
        ((content),) = re.findall(f"<{element}>(.*?)</{name}>", document, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert f"{directive}-src 'sha256-{digest}'" in policy
    assert not re.search(r'(?:src|href)="(?!data:|#)', document)
    assert not re.search(r"^(?:import|export)\b", document, re.MULTILINE)
    assert "window.attacked" not in document


def test_output_keeps_links_and_pipes(tmp_path: Path) -> None:
    make_run(tmp_path / "run", num_tasks=1)
    (tmp_path / "link").symlink_to("target")
    for _ in range(2):
        write_static_report([tmp_path / "run"], tmp_path / "link")
        assert (tmp_path / "link").is_symlink()
        assert (tmp_path / "target").read_text().startswith("<!doctype html>")
    os.mkfifo(tmp_path / "pipe")
    reader = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    write_output(tmp_path / "pipe", "text")
    assert os.read(reader, 9) == b"text"
    os.close(reader)


@pytest.mark.slow
def test_chromium_displays_a_report_and_keeps_it_inert(report: Path) -> None:
    program = shutil.which("chromium")
    if program is None:
        pytest.skip("needs Debian's chromium")
    fragment = f"#/run/hostile/episode?task={quote(HOSTILE_TASK, safe='')}&attempt=0"
    options = ("--headless", "--no-sandbox", "--virtual-time-budget=20000", "--dump-dom")
    command = [program, *options, report.as_uri() + fragment]
    page = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout
    (content,) = re.findall(r"<main.*?</main>", page, re.DOTALL)
    assert content.count("<article") == 10
    assert "&lt;script&gt;window.attacked = 1&lt;/script&gt;" in content
    assert "\u2039U+202E\u203a" in content
    assert not re.search(r"<(?:script|iframe|img|style|meta|base|object)\b", content)
    assert not re.search(r'href="(?!#)', content)
    assert not set("\u202e\u2066\x1b\x07\x9b\u200b") & set(content)
