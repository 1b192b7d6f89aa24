"""The shell blocks of the documentation run; a table says why some of their lines do not."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from command_line import run
from model_server import Answer, ChatServer, message
from pages import PAGES, ROOT, SERVER
from repositories import commit, run_git

pytestmark = pytest.mark.slow

# Commands that do not run here, by the pattern of their beginning, and why.
ELSEWHERE = {
    r"(pip|apt-get) install": "changes the machine; `make test-install` installs the wheel",
    r"make ": "these are the suites themselves",
    r"python (examples|benchmarks)/|python train\.py": "tests/extras and the benchmarks",
    r"git clone|.*(--pypi|--repositories|SWE-bench/|swebench)": "the network",
    r".*(QuixBugs|defects4j|images pull)": "the network; tests/tasks makes small ones",
    r"docker |podman |DOCKER_HOST=|systemd-run": "a daemon; tests/sandbox/containers has one",
    r"vllm |harbor |.*(--ray |--agent (nano|mini))": "another program; tests/extras installs it",
    r"coding-gym (serve|view runs/( |$))": "it does not end; tests/serve and tests/viewer end it",
    r"cat |export ": "a file or a value of the reader",
}

# Shorter runs, and stand-ins for the reader's server, model and files.
REPLACED = {
    "http://localhost:8000/v1": SERVER,
    "--model … --base-url …": f"--model any --base-url {SERVER}",
    "-n 48 --attempts 4": "-n 1",
    "--tasks bundled --attempts 4": "-n 2",
    "harbor --out harbor-tasks": "harbor -n 1 --out harbor-tasks",
    "SOURCE": "rows.jsonl",
    "mkdir -p my-task/hidden/tests": "mkdir -p my-task/hidden; cp -r hidden my-task/hidden/tests",
}

# Commands of other pages that a page relies on.
BEFORE = {
    "tasks": "coding-gym tasks new my-task",
    "viewer": "coding-gym eval --agent gold --task ledgerline-month-overlap --attempts 2 "
    "--out runs/a; coding-gym eval --agent noop --task ledgerline-month-overlap --out runs/b",
}

BUGGY = "def area(width, height):\n    return width + height\n"
TEST = "from shapes import area\n\n\ndef test_wide():\n    assert area(3, 5) == 15\n"


def commands(page: Path) -> list[str]:
    """Returns the commands of a page in its order, without what they print."""
    text = re.sub(r"\\\n +", "", page.read_text(encoding="utf-8"))
    fenced = r"^```(console|bash)\n(.*?)^```$"
    program = r"(?:[A-Z_]+=\S+ )*(?:coding-gym|python|pip|make|git|docker|export)"
    indented = rf"^ {{4}}({program} [^\n]*)"
    found = re.findall(rf"(?ms){fenced}|{indented}", text)
    lines = [
        line
        for language, block, alone in found
        for line in (block or alone).splitlines()
        if language != "console" or line.startswith("$ ")
    ]
    return [line.removeprefix("$ ") for line in lines]


def needs(line: str) -> list[str]:
    """Returns the patterns of `ELSEWHERE` that keep a command from running here."""
    return [one for one in ELSEWHERE if re.match(rf"([A-Z_]+=\S+ )*({one})", line)]


def runs_here(line: str) -> bool:
    return not needs(line)


ALL = (ROOT / "README.md", *PAGES)
RUN = [page for page in ALL if any(map(runs_here, commands(page)))]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home folder with the files that the pages assume."""
    monkeypatch.chdir(tmp_path)
    run("tasks", "export", "-n", "1", "--out", "rows.jsonl")
    for name in ("bugs.jsonl", "cachetools.jsonl"):
        shutil.copy("rows.jsonl", name)
    run("tasks", "new", "till")
    tree = Path("till/tree")
    files = {str(one.relative_to(tree)): one.read_text("utf-8") for one in tree.rglob("*.py")}
    commit(tmp_path / "src/till", files, "Begin")
    Path("till/hidden/tests").rename("hidden")
    run_git(tree, "apply", "--include=receipt.py", "../gold.patch")
    commit(tmp_path / "src/shapes", {"shapes.py": BUGGY}, "Begin")
    fixed = {"shapes.py": BUGGY.replace("+", "*"), "test_shapes.py": TEST}
    commit(tmp_path / "src/shapes", fixed, "Fix area")
    return tmp_path


@pytest.mark.parametrize("page", RUN, ids=lambda page: page.stem)
def test_commands_of_a_page_run(page: Path, home: Path) -> None:
    lines = [BEFORE.get(page.stem, ""), *filter(runs_here, commands(page))]
    script = "\n".join(lines)
    for old, new in REPLACED.items():
        script = script.replace(old, new)
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    editor = f"cp {home}/till/tree/receipt.py"
    environment = os.environ | {"PATH": path, "HOME": str(home), "EDITOR": editor}
    if "cache clear" in script:
        environment["XDG_CACHE_HOME"] = str(home / "cache")
    with ChatServer(lambda _: Answer(message("Done."))) as server:
        command = ["bash", "-euxo", "pipefail", "-c", script.replace(SERVER, server.base_url)]
        ended = subprocess.run(
            command,
            env=environment,
            input="y\n",
            capture_output=True,
            text=True,
            check=False,
            timeout=240,
            start_new_session=True,
        )
    assert ended.returncode == 0, ended.stdout + ended.stderr


def test_no_reason_and_no_replacement_is_stale() -> None:
    lines = [line for page in ALL for line in commands(page)]
    assert {one for line in lines for one in needs(line)} == ELSEWHERE.keys()
    script = "\n".join(filter(runs_here, lines))
    assert [old for old in REPLACED if old not in script] == []
