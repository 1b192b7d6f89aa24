"""R2E-Gym: commits that make tests pass, with the tests' files and both runs' logs in the row.

The repair is the part of the commit that is no test, the base its first parent, which is found in
a clone: give `load_tasks` the clones as ``repositories``. Hidden tests are the files of the row, in
``r2e_tests/``. In the published images they lie at ``/r2e_tests``, where a policy can read them.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import PurePosixPath
from typing import Any

from coding_gym.patch import Patch
from coding_gym.row_reader import RowReader
from coding_gym.tasks.sources.kinds import Row, RowFormat

_COMMIT, _RUNS, _EXPECTED = (
    "parsed_commit_content",
    "execution_result_content",
    "expected_output_json",
)
_OWNERS = {
    "aiohttp": "aio-libs/aiohttp",
    "bokeh": "bokeh/bokeh",
    "coveragepy": "nedbat/coveragepy",
    "datalad": "datalad/datalad",
    "mypy": "python/mypy",
    "numpy": "numpy/numpy",
    "orange3": "biolab/orange3",
    "pandas": "pandas-dev/pandas",
    "pillow": "python-pillow/Pillow",
    "pyramid": "Pylons/pyramid",
    "scrapy": "scrapy/scrapy",
    "statsmodels": "statsmodels/statsmodels",
    "sympy": "sympy/sympy",
    "tornado": "tornadoweb/tornado",
}
_COLOUR = re.compile(r"\x1b\[\d*m")
_OUTCOME = re.compile(r"^([A-Z]+) (\S+?\.py::.*)$", re.MULTILINE)
_FILE_NAME = re.compile(r"\w[\w.-]*")
_TEST_FOLDERS = {"tests", "Tests", "test", "Test"}
_SIGNS = {"context": " ", "added": "+", "deleted": "-", "note": "\\ "}


def _reads(row: Row) -> bool:
    return "repo_name" in row and _COMMIT in row


def _to_row(row: Row, where: str) -> Row:
    reader = RowReader(row, where)
    name, sha = reader.required("repo_name"), reader.required("commit_hash")
    if name not in _OWNERS:
        raise reader.wrong("repo_name", f"one of {', '.join(_OWNERS)}")
    commit, runs = _object(reader, _COMMIT), _object(reader, _RUNS)
    files = _test_files(reader, runs)
    broken, kept = _tests(reader, runs)
    return {
        "instance_id": row.get("instance_id") or f"{name}-{sha}",
        "repo": _OWNERS[name],
        "base_commit": f"{sha}^",
        "problem_statement": _issue(reader.required("problem_statement")),
        "patch": "".join(_repair(commit, reader)),
        "test_patch": Patch.between({}, files).text,
        "FAIL_TO_PASS": broken,
        "PASS_TO_PASS": kept,
        "created_at": commit.get("commit_date"),
        "image": row.get("docker_image"),
        "split": row.get("split"),
    }


def _issue(text: str) -> str:
    """Returns what stands between the marks of a prompt; all of it where there are none."""
    inside = text.partition("[ISSUE]")[2].rpartition("[/ISSUE]")[0]
    return inside.strip() or text


def _object(reader: RowReader, key: str) -> Row:
    try:
        value = json.loads(reader.required(key))
    except (ValueError, RecursionError) as error:
        raise reader.error(key, f"is not JSON: {error}") from None
    if not isinstance(value, Mapping):
        raise reader.wrong(key, "a JSON object")
    return value


def _test_files(reader: RowReader, runs: Row) -> dict[str, str]:
    names, codes = runs.get("test_file_names"), runs.get("test_file_codes")
    is_fine = (
        isinstance(names, list)
        and isinstance(codes, list)
        and len(names) == len(codes) > 0
        and all(isinstance(text, str) for text in [*names, *codes])
        and all(_FILE_NAME.fullmatch(name) for name in names)
    )
    if not is_fine:
        raise reader.wrong(_RUNS, "an object with equally many test_file_names and test_file_codes")
    return dict(zip((f"r2e_tests/{name}" for name in names or ()), codes or (), strict=True))


def _tests(reader: RowReader, runs: Row) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Returns the tests that the commit repairs, and those that passed before and after."""
    before, after = (_outcomes(runs.get(f"{when}_commit_res_stdout")) for when in ("old", "new"))
    expected = {
        _bare(name) for name, outcome in _object(reader, _EXPECTED).items() if outcome == "PASSED"
    }
    passing = [one for one in after if after[one] == "PASSED" and _spelt(one) in expected]
    broken = tuple(one for one in passing if before.get(one) != "PASSED")
    if not broken:
        raise reader.error(_RUNS, "has no test that fails before the commit and passes after it")
    return broken, tuple(one for one in passing if before.get(one) == "PASSED")


def _outcomes(log: Any) -> dict[str, str]:
    """Returns the outcomes by test id of pytest's summary."""
    _, _, summary = str(log or "").partition("short test summary info")
    return {_bare(one): outcome for outcome, one in _OUTCOME.findall(_COLOUR.sub("", summary))}


def _bare(name: str) -> str:
    return _COLOUR.sub("", name).split(" - ")[0].strip()


def _spelt(test_id: str) -> str:
    """Spells an id as the row's expected outcomes do: without the file, and with dots."""
    return ".".join(test_id.split("::")[1:])


def _repair(commit: Row, reader: RowReader) -> Iterator[str]:
    """Yields the diffs of the files that are no tests, and not binary: those have no content."""
    changes = commit.get("file_diffs")
    if not isinstance(changes, list):
        raise reader.wrong(_COMMIT, "an object with a list of file_diffs")
    try:
        for change in changes:
            path = change["header"]["file"]["path"]
            if not _is_test(path) and not change.get("is_binary_file"):
                yield "".join(_diff(change, path))
    except (AttributeError, KeyError, TypeError) as error:
        raise reader.error(_COMMIT, f"has a file change without {error}") from None


def _is_test(path: str) -> bool:
    name = PurePosixPath(path)
    return (
        name.name.startswith("test_")
        or name.name.endswith("_test.py")
        or bool(_TEST_FOLDERS & set(name.parts))
    )


def _diff(change: Row, path: str) -> Iterator[str]:
    """Yields the lines of one file's diff, as git wrote them."""
    yield f"diff --git a/{path} b/{path}\n"
    if misc := change["header"].get("misc_line"):
        yield f"{misc}\n"
    if change.get("minus_file") and change.get("plus_file"):
        yield f"--- {change['minus_file']['path']}\n+++ {change['plus_file']['path']}\n"
    for hunk in change.get("hunks") or ():
        yield _hunk_header(hunk["descriptor"])
        yield from _hunk_lines(hunk["line_group"]["all_lines"])


def _hunk_header(descriptor: Row) -> str:
    old, new = (_range(descriptor[side]) for side in ("old_range", "new_range"))
    section = descriptor.get("section")
    return f"@@ -{old} +{new} @@" + (f" {section}" if section else "") + "\n"


def _range(lines: Row) -> str:
    start, length = lines["start"], lines.get("length")
    return f"{start}" if length is None else f"{start},{length}"


def _hunk_lines(lines: Iterable[Row]) -> Iterator[str]:
    for line in lines:
        yield f"{_SIGNS[line['type']]}{line['content']}\n"


R2E_GYM = RowFormat(name="r2e-gym", reads=_reads, to_row=_to_row)
