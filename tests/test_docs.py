"""What the documentation shows is true: its Python runs, its files exist."""

import re
from pathlib import Path

import pytest

from coding_gym.testing.debug import toolset_registrations_undone

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def blocks() -> list[tuple[str, str]]:
    """Returns (page and number, code) of every Python block that stands alone."""
    found = []
    for page in PAGES:
        codes = re.findall(r"(?ms)^```python\n(.*?)^```", page.read_text(encoding="utf-8"))
        found += [
            (f"{page.name} {number}", code)
            for number, code in enumerate(codes, 1)
            if "prepared.jsonl" not in code  # made by the commands above it, from the network
        ]
    return found


@pytest.mark.parametrize(("name", "code"), blocks(), ids=[name for name, _ in blocks()])
def test_python_in_the_documentation_runs(
    name: str, code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, object] = {}
    with toolset_registrations_undone():
        exec(compile(code, name, "exec"), namespace)  # noqa: S102 - our own documentation
    assert {"env", "task", "tasks"} & namespace.keys()


def test_linked_files_exist() -> None:
    missing = [
        f"{page.name}: {target}"
        for page in PAGES
        for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text(encoding="utf-8"))
        if not (page.parent / target).exists()
    ]
    assert missing == []


def test_the_readme_says_how_many_bundled_tasks_there_are() -> None:
    from coding_gym import load_tasks

    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert f"{len(load_tasks('bundled'))} bundled tasks" in readme
    assert f"{len(load_tasks('polyglot'))} more" in readme
