"""The pages on sandboxes say what the backends say."""

import re
from dataclasses import fields
from pathlib import Path
from typing import get_args, get_type_hints

import pytest

from coding_gym import sandbox
from coding_gym.sandbox import (
    Promise,
    SandboxBackend,
    SandboxLimits,
    SandboxSpec,
    backend_names,
    get_backend,
)
from coding_gym.sandbox.containers import apptainer
from coding_gym.sandbox.namespace import NamespaceBackend

pytestmark = pytest.mark.filterwarnings("ignore::coding_gym.sandbox.process.NoIsolationWarning")

DOCS = Path(__file__).parents[2] / "docs"
GUIDE = (DOCS / "sandboxes.md").read_text(encoding="utf-8")
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


def test_the_table_has_a_line_for_every_promise_and_a_column_for_every_backend() -> None:
    assert [row[0] for row in TABLE] == [promise.value for promise in Promise]
    assert {name.strip("`") for name in COLUMNS} - {ON_DISK.strip("`")} == set(backend_names())


@pytest.mark.parametrize("column", COLUMNS)
def test_every_cell_says_yes_no_or_where(column: str) -> None:
    assert [cell for cell in COLUMNS[column] if not re.match("(yes|no)$|where ", cell)] == []


@pytest.mark.parametrize("column", COLUMNS)
def test_what_is_not_covered_is_what_the_probe_says(column: str) -> None:
    probe = backend(column).probe()
    if not probe.available:
        pytest.skip(f"{column}: {probe.detail}")
    said = {True: "no", False: "yes"}
    wrong = [
        f"{promise.value}: the page says {cell}, the probe {said[promise in probe.missing]}"
        for promise, cell in zip(Promise, COLUMNS[column], strict=True)
        if cell in {"yes", "no"} and cell != said[promise in probe.missing]
    ]
    assert wrong == []


def test_what_an_engine_that_is_not_here_never_keeps_is_not_covered() -> None:
    docker = {Promise.DISK_LIMIT, Promise.INODE_LIMIT, Promise.PERSISTENT_SHELL, Promise.OWN_PYTHON}
    for column, never in (("`docker`", docker), ("`apptainer`", apptainer.MISSING)):
        cells = dict(zip(Promise, COLUMNS[column], strict=True))
        assert {promise for promise in cells if cells[promise] == "no"} == set(never)


def test_every_shell_and_every_limit_is_named() -> None:
    options = GUIDE[GUIDE.index("## Options") : GUIDE.index("## Persistent")]
    shells = get_args(get_type_hints(SandboxSpec)["shell"])
    names = [*(f'`"{shell}"`' for shell in shells), *(f"`{f.name}`" for f in fields(SandboxLimits))]
    assert [name for name in names if name not in options] == []


def test_every_backend_has_its_line_among_the_first() -> None:
    assert re.findall(r'(?m)^\| `"(\w+)"`', GUIDE[: GUIDE.index("## Isolation")]) == [
        *("namespace", "landlock", "docker", "apptainer", "process")
    ]


def test_open_and_run_are_read_in_few_files() -> None:
    for page, most in zip(str(sandbox.__doc__).split("\n``run``"), (12, 8), strict=True):
        names = re.findall(r"\n    \d+\. (\S+)", page)
        assert 0 < len(names) <= most
        assert [name for name in names if not Path(sandbox.__path__[0], name).is_file()] == []
