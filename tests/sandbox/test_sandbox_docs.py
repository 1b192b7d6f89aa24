"""The documentation of sandboxes agrees with the backends."""

import re
from pathlib import Path

import pytest

from coding_gym.sandbox import Promise, SandboxBackend, backend_names, get_backend
from coding_gym.sandbox.namespace import NamespaceBackend

DOCS = Path(__file__).parents[2] / "docs"
REFERENCE = (DOCS / "reference" / "sandboxes.md").read_text(encoding="utf-8")
ON_DISK = "`namespace`, changes on disk"


def rows(start: str) -> list[list[str]]:
    """Returns the cells of the table whose header line starts so, without the header."""
    lines = REFERENCE[REFERENCE.index(start) :].split("\n\n")[0].splitlines()
    return [
        [cell.strip() for cell in line.strip("|").split("|")] for line in [lines[0], *lines[2:]]
    ]


HEADER, *TABLE = rows("| | `namespace`")
COLUMNS = {name: [row[HEADER.index(name)] for row in TABLE] for name in HEADER[1:]}


def backend(column: str) -> SandboxBackend:
    return NamespaceBackend("disk") if column == ON_DISK else get_backend(column.strip("`"))


def test_the_table_has_every_promise_and_backend() -> None:
    assert [row[0] for row in TABLE] == [promise.value for promise in Promise]
    assert {name.strip("`") for name in COLUMNS} - {ON_DISK.strip("`")} == set(backend_names())


@pytest.mark.parametrize("column", COLUMNS)
def test_the_table_agrees_with_the_probe(column: str) -> None:
    assert [cell for cell in COLUMNS[column] if not re.match("(yes|no)$|where ", cell)] == []
    probe = backend(column).probe()
    if not probe.available:
        pytest.skip(f"{column}: {probe.detail}")
    expected = {True: "no", False: "yes"}
    wrong = [
        f"{promise.value}: the page has {cell}, the probe {expected[promise in probe.missing]}"
        for promise, cell in zip(Promise, COLUMNS[column], strict=True)
        if cell in {"yes", "no"} and cell != expected[promise in probe.missing]
    ]
    assert wrong == []


def test_every_promise_has_a_test() -> None:
    folder = Path(__file__).parent / "conformance"
    texts = [path.read_text("utf-8") for path in folder.glob("test_*.py")]
    marker = r"^@pytest\.mark\.promise\(Promise\.(\w+)"
    marked = re.findall(marker, "\n".join(texts), re.MULTILINE)
    assert {*marked} == {promise.name for promise in Promise}
