"""Multi-SWE-bench and Multi-SWE-RL: pull requests in seven languages, tests in objects by name.

Rows do not say how tests run; their images hold scripts for that. Give such tasks a runner and a
test command by the ``environments`` of `load_tasks`, which refuses them without where their ids
are not spelt as pytest's.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from coding_gym.row_reader import RowReader
from coding_gym.tasks.sources.fields import patch_text
from coding_gym.tasks.sources.kinds import Row, RowFormat
from coding_gym.tasks.sources.languages import language_named, language_of

# Outcomes before the fix from which a test came to pass: failed, was skipped, did not exist.
_BROKEN = ("f2p_tests", "s2p_tests", "n2p_tests")


def _reads(row: Row) -> bool:
    return "fix_patch" in row and "org" in row


def _to_row(row: Row, where: str) -> Row:
    reader = RowReader(row, where)
    owner, name = reader.required("org"), reader.required("repo")
    number = _number(reader)
    fix = patch_text(reader, "fix_patch")
    named = row.get("lang") or row.get("language")
    return {
        "instance_id": row.get("instance_id", f"{owner}__{name}-{number}"),
        "repo": f"{owner}/{name}",
        "base_commit": _base_commit(reader),
        "problem_statement": _issues(reader),
        "patch": fix,
        "test_patch": patch_text(reader, "test_patch"),
        "FAIL_TO_PASS": _broken(reader),
        "PASS_TO_PASS": tuple(_names(reader, "p2p_tests")),
        "hints_text": reader.text("hints") if row.get("hints") is not None else "",
        "created_at": row.get("created_at"),
        "split": row.get("split"),
        "language": language_named(named) if isinstance(named, str) else language_of(fix),
        "image": f"mswebench/{owner}_m_{name}:pr-{number}".lower(),
    }


def _number(reader: RowReader) -> int:
    value = reader.row.get("number")
    if isinstance(value, str) and value.isascii() and value.isdigit():
        return int(value)
    if value is None:
        raise reader.error("number", "is missing")
    return reader.count("number")


def _base_commit(reader: RowReader) -> str:
    base = reader.row.get("base")
    if not isinstance(base, Mapping) or not isinstance(base.get("sha"), str):
        if base is None:
            raise reader.error("base", "is missing")
        raise reader.wrong("base", "an object with the text 'sha'")
    return str(base["sha"])


def _issues(reader: RowReader) -> str:
    """Returns the resolved issues as one text; the pull request's own would tell the repair."""
    key = "resolved_issues"
    if reader.row.get(key) is None:
        raise reader.error(key, "is missing")
    issues = reader.row[key]
    if isinstance(issues, Mapping):
        issues = _from_columns(issues, reader)
    if not isinstance(issues, list | tuple) or not issues:
        raise reader.wrong(key, "a list of at least one issue")
    texts = []
    for issue in issues:
        if not isinstance(issue, Mapping) or not isinstance(issue.get("title"), str):
            raise reader.wrong(key, "a list of objects with 'title' and 'body'")
        texts.append(f"{issue['title']}\n\n{issue.get('body') or ''}".strip())
    return "\n\n".join(texts)


def _from_columns(issues: Row, reader: RowReader) -> list[Row]:
    """Returns the issues of an object of lists by field, as column stores keep them."""
    columns = [column for column in issues.values() if isinstance(column, list | tuple)]
    if len(columns) != len(issues) or len({len(column) for column in columns}) != 1:
        raise reader.wrong("resolved_issues", "lists of one length by field")
    return [dict(zip(issues, values, strict=True)) for values in zip(*columns, strict=True)]


def _broken(reader: RowReader) -> tuple[str, ...]:
    if reader.row.get("fixed_tests") is not None:
        return tuple(_names(reader, "fixed_tests"))
    if not any(key in reader.row for key in _BROKEN):
        raise reader.error("f2p_tests", "is missing")
    return tuple(name for key in _BROKEN for name in _names(reader, key))


def _names(reader: RowReader, key: str) -> Iterator[str]:
    """Yields the tests that a field names: an object by name, or one with a list of names."""
    tests: Any = reader.row.get(key)
    if tests is None:
        return
    if not isinstance(tests, Mapping):
        raise reader.wrong(key, "an object of outcomes by test")
    if isinstance(tests.get("name"), list | tuple):
        yield from (str(name) for name in tests["name"])
        return
    # Column stores give every row the names of all rows, with nothing in them.
    yield from (str(name) for name, outcome in tests.items() if outcome is not None)


MULTI_SWE_BENCH = RowFormat(name="multi-swe-bench", reads=_reads, to_row=_to_row)
