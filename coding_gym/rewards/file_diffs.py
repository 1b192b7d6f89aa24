"""A unified diff as nano-agent and CodeRepairRL take it apart: texts by file name, unread."""

import re

_FILE_START = re.compile(r"^diff --git", re.MULTILINE)
_BEFORE_NAME, _AFTER_NAME = "diff --git a/", " b/"


def diffs_by_file(diff: str) -> dict[str, str]:
    r"""Returns the text of each file's part, by the file's name before the change.

    Of two parts of one name the last counts. What is no diff is a part without a name.

    Source: ``split_diff_by_files`` and ``extract_filename_from_diff``, the same in nano-agent
    5.0.0 (``tests/utils.py``) and CodeRepairRL (``src/rewards/diff.py``).

    >>> diffs_by_file("diff --git a/x b/y\n+1\ndiff --git a/z b/z\n-2\n")
    {'x': 'diff --git a/x b/y\n+1', 'z': 'diff --git a/z b/z\n-2'}
    """
    starts = [match.start() for match in _FILE_START.finditer(diff)]
    ends = zip([0, *starts], [*starts, None], strict=True)
    parts = [diff[start:end].strip() for start, end in ends]
    return {_name(part): part for part in parts if part}


def _name(part: str) -> str:
    """The name in a ``diff --git`` line; "" where git had to quote it, and without such a line."""
    line = part.splitlines()[0]
    start, end = line.find(_BEFORE_NAME), line.rfind(_AFTER_NAME)
    first = start + len(_BEFORE_NAME)
    return line[first:end] if start >= 0 and first <= end else ""
