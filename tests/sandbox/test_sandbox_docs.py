"""The docs page and the conformance suite cover every promise."""

import re
from pathlib import Path

from coding_gym.sandbox import Promise

ROOT = Path(__file__).parents[2]


def test_the_docs_page_has_every_promise() -> None:
    page = (ROOT / "docs" / "reference" / "sandboxes.md").read_text(encoding="utf-8")
    assert [promise for promise in Promise if f"| {promise.value} |" not in page] == []


def test_every_promise_has_a_test() -> None:
    folder = Path(__file__).parent / "conformance"
    texts = [path.read_text("utf-8") for path in folder.glob("test_*.py")]
    marker = r"^@pytest\.mark\.promise\(Promise\.(\w+)"
    marked = re.findall(marker, "\n".join(texts), re.MULTILINE)
    assert {*marked} == {promise.name for promise in Promise}
