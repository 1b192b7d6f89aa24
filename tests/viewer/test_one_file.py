"""``coding-gym view --static``: runs in one HTML file."""

import base64
import gzip
import hashlib
import json
import re
from pathlib import Path

from checks.synthetic_runs import make_hostile_run, make_run
from command_line import run


def written(tmp_path: Path, *runs: Path) -> str:
    file = tmp_path / "report.html"
    run("view", *runs, "--static", file)
    return file.read_text(encoding="utf-8")


def embedded(document: str) -> dict[str, object]:
    (content,) = re.findall(r'id="embedded">(.*?)</script>', document, re.DOTALL)
    return {
        address: json.loads(gzip.decompress(base64.b64decode(packed)))
        for address, packed in json.loads(content).items()
    }


def test_a_report_holds_every_page_of_its_runs(tmp_path: Path) -> None:
    a = make_run(tmp_path / "a", num_tasks=3, attempts=2)
    b = make_run(tmp_path / "b", num_tasks=3, seed=1)
    pages = embedded(written(tmp_path, a, b))
    task = "task=alder__parser-000000"
    expected = {"api/runs", "api/runs/a", "api/runs/a/episodes", "api/compare?a=b&b=a"}
    expected |= {f"api/runs/a/episode?{task}&attempt=1", f"api/runs/b/gold?{task}&attempt=0"}
    assert expected <= pages.keys()
    table = pages["api/runs/a/episodes"]
    assert isinstance(table, dict)
    assert len(table["episodes"]) == table["total"] == 6


def test_a_report_loads_nothing_and_runs_only_its_own_script(tmp_path: Path) -> None:
    document = written(tmp_path, make_run(tmp_path / "a", num_tasks=1))
    (policy,) = re.findall(r'http-equiv="Content-Security-Policy" content="(.*?)"', document)
    assert policy.startswith("default-src 'none'; ")
    for element, directive in (('script type="module"', "script"), ("style", "style")):
        name = element.split()[0]
        ((content),) = re.findall(f"<{element}>(.*?)</{name}>", document, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert f"{directive}-src 'sha256-{digest}'" in policy
    assert not re.search(r'(?:src|href)="(?!data:|#)', document)
    assert not re.search(r"^(?:import|export)\b", document, re.MULTILINE)


def test_nothing_of_the_content_is_markup_of_the_report(tmp_path: Path) -> None:
    hostile = make_hostile_run(tmp_path / "hostile", output_chars=1_000_000, num_lines=1_000)
    document = written(tmp_path, hostile)
    assert "attacked" not in document
    assert len(document) < 500_000  # long texts are cut
    assert embedded(document)


def test_more_episodes_than_a_page_takes_are_refused(tmp_path: Path) -> None:
    large = make_run(tmp_path / "large", num_tasks=201, attempts=10)
    said = run("view", large, "--static", tmp_path / "report.html", code=2)
    assert "one file holds 2,000 episodes at most, got 2,010" in said
    assert not (tmp_path / "report.html").exists()
