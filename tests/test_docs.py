"""What the documentation shows is true: its Python runs, its files exist."""

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from coding_gym.cli.app import app
from coding_gym.testing.debug import restored_registries

ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"
PAGES = sorted((ROOT / "docs").rglob("*.md"))


def blocks(*pages: Path) -> list[Any]:
    """Returns the code of every Python block that stands alone; its id is page and number."""
    return [
        pytest.param(code, id=f"{page.name} {number}")
        for page in pages
        for number, code in enumerate(
            re.findall(r"(?ms)^```python\n(.*?)^```", page.read_text(encoding="utf-8")), 1
        )
        if "prepared.jsonl" not in code  # made by the commands above it, from the network
    ]


def assert_runs(code: str) -> dict[str, object]:
    namespace: dict[str, object] = {}
    with restored_registries():
        exec(compile(code, "a block of the page", "exec"), namespace)  # noqa: S102 - our own
    assert {"env", "task", "tasks"} & namespace.keys()
    return namespace


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.usefixtures("elsewhere")
@pytest.mark.parametrize("code", blocks(README))
def test_the_readme_solves_a_task(code: str) -> None:
    assert assert_runs(code)["reward"] == 1.0


@pytest.mark.usefixtures("elsewhere")
@pytest.mark.parametrize("code", blocks(*PAGES))
def test_python_in_the_pages_runs(code: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert_runs(code)
    assert "could not be loaded" not in capsys.readouterr().out


def test_linked_files_exist() -> None:
    missing = [
        f"{page.name}: {target}"
        for page in (README, *PAGES)
        for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text(encoding="utf-8"))
        if not (page.parent / target).exists()
    ]
    assert missing == []


def command_lines(page: Path) -> list[str]:
    """Returns the calls of ``coding-gym`` in a page, without their comments."""
    text = page.read_text(encoding="utf-8").replace("\\\n", " ")
    return re.findall(r"(?m)^(?: {4}|\$ )(?:\$ )?(coding-gym [^#\n]*)", text)


@pytest.mark.parametrize("page", [README, *PAGES], ids=lambda page: page.stem)
def test_options_on_command_lines_exist(page: Path) -> None:
    unknown = []
    for line in command_lines(page):
        _, *words = shlex.split(line)
        command: Any = get_command(app)
        while hasattr(command, "commands") and words:
            command = command.commands[words.pop(0)]
        options = {name for option in command.params for name in (*option.opts, "--help")}
        named = {word.partition("=")[0] for word in words if re.match(r"--?[a-z]", word)}
        unknown += [f"{line}: {name}" for name in sorted(named - options)]
    assert unknown == []


def test_the_readme_says_how_many_bundled_tasks_there_are() -> None:
    from coding_gym import load_tasks

    readme = README.read_text(encoding="utf-8")
    assert f"{len(load_tasks('bundled'))} bundled tasks" in readme
    assert f"{len(load_tasks('polyglot'))} more" in readme
