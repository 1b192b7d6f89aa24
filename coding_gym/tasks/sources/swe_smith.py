"""Reads rows of SWE-smith, in which ``patch`` introduces the bug into a project at one commit.

The gold patch is therefore the reverse of ``patch``, and the base is the commit with the gold patch
reversed. Rows have the first eight digits of the commit id; the full id is read from a clone, so
the argument ``repositories`` of `load_tasks` must name clones. Rows have no install commands; the
commands here are the dataset's default.
"""

import re
from typing import Any

from coding_gym.errors import PatchError
from coding_gym.patch import Patch
from coding_gym.tasks.sources.languages import language_of
from coding_gym.tasks.sources.reversal import reversed_patch
from coding_gym.tasks.sources.swe_bench import INSTALL_PYTEST
from coding_gym.tasks.task_row import Row, Text, row_error, value_of

_REPO = re.compile(r"swesmith/([\w-]+?)__([\w.-]+)\.([0-9a-f]{7,40})")
_COPIED_FIELDS = (
    "instance_id", "FAIL_TO_PASS", "PASS_TO_PASS", "created_at", "problem_statement",
    "difficulty", "split", "version",
)  # fmt: skip
_INSTALL = ("python -m pip install -e .", INSTALL_PYTEST)


def reads(row: Row) -> bool:
    """Returns whether the repository of a row belongs to SWE-smith."""
    return str(row.get("repo", "")).startswith("swesmith/")


def to_row(row: Row, position: str) -> Row:
    """Returns a row of SWE-smith in the common schema."""
    match = _REPO.fullmatch(value_of(row, "repo", Text, position, ""))
    if match is None:
        requirement = "must be 'swesmith/<owner>__<name>.<commit>'"
        raise row_error(row, position, "repo", f"{requirement}, got {row.get('repo')!r:.80}")
    owner, name, commit = match.groups()
    bug: str = value_of(row, "patch", str, position, "")
    try:
        gold = reversed_patch(Patch(bug))
    except PatchError as error:
        raise row_error(row, position, "patch", f"cannot be reversed: {error}") from None
    if gold.is_empty:
        requirement = "must be the patch that introduces the bug"
        raise row_error(row, position, "patch", f"{requirement}, got {bug!r:.80}")
    derived_fields: dict[str, Any] = {
        "repo": f"{owner}/{name}",
        "base_commit": commit,
        "environment_setup_commit": commit,
        "patch": gold.text,
        "reverse_patch": gold.text,
        "language": language_of(bug),
        "image": _image(value_of(row, "image_name", Text, position, "")),
    }
    if derived_fields["language"] == "python":
        derived_fields |= {"interpreter": "3.10", "install_commands": _INSTALL}
    return {key: row[key] for key in _COPIED_FIELDS if key in row} | derived_fields


def _image(name: str) -> str:
    """Returns the published name of a row's image; older rows have an unpublished name."""
    return name if not name or "/" in name else f"jyangballin/{name.replace('__', '_1776_')}:latest"
