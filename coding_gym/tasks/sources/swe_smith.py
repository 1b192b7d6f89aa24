"""SWE-smith: bugs put into projects at one commit each; ``patch`` is the one that breaks.

The gold patch is therefore that patch turned round, and the base is the commit with the gold patch
taken back. Rows name the commit by its first eight digits; a full one is found in a clone, so give
`load_tasks` the clones as ``repositories``. How a project is installed is not in the row: what
stands here is what the dataset does where a project needs nothing else.
"""

import re
from typing import Any

from coding_gym.errors import PatchError
from coding_gym.patch import Patch
from coding_gym.row_reader import RowReader
from coding_gym.tasks.sources.kinds import Row, RowFormat
from coding_gym.tasks.sources.languages import language_of
from coding_gym.tasks.sources.reversal import reversed_patch
from coding_gym.tasks.sources.swe_bench import INSTALL_PYTEST

_REPO = re.compile(r"(?:swesmith/)?([\w-]+?)__([\w.-]+)\.([0-9a-f]{7,40})")
_KEPT = (
    "instance_id", "FAIL_TO_PASS", "PASS_TO_PASS", "created_at", "problem_statement", "hints_text",
    "difficulty", "split", "version",
)  # fmt: skip
_INSTALL = ("python -m pip install -e .", INSTALL_PYTEST)


def _reads(row: Row) -> bool:
    return str(row.get("repo", "")).startswith("swesmith/")


def _to_row(row: Row, where: str) -> Row:
    reader = RowReader(row, where)
    match = _REPO.fullmatch(reader.required("repo"))
    if match is None:
        raise reader.wrong("repo", "'swesmith/<owner>__<name>.<commit>'")
    owner, name, commit = match.groups()
    bug = reader.required("patch")
    try:
        gold = reversed_patch(Patch(bug))
    except PatchError as error:
        raise reader.error("patch", f"cannot be turned round: {error}") from None
    if gold.is_empty:
        raise reader.wrong("patch", "the patch that makes the bug")
    made: dict[str, Any] = {
        "repo": f"{owner}/{name}",
        "base_commit": commit,
        "environment_setup_commit": commit,
        "patch": gold.text,
        "reverse_patch": gold.text,
        "language": language_of(bug),
        "image": _image(reader),
    }
    if made["language"] == "python":
        made |= {"interpreter": "3.10", "install_commands": _INSTALL}
    return {key: row[key] for key in _KEPT if key in row} | made


def _image(reader: RowReader) -> str:
    """Returns the published name of a row's image; older rows have it as it was built."""
    if reader.row.get("image_name") is None:
        return ""
    name = reader.text("image_name")
    return name if "/" in name else f"jyangballin/{name.replace('__', '_1776_')}:latest"


SWE_SMITH = RowFormat(name="swe-smith", reads=_reads, to_row=_to_row)
