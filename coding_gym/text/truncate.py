"""Bounding text, and taking out of it the one thing that no seed can fix: how long tests took."""

import re

from coding_gym.errors import InvalidArgumentError

_COUNT = (
    r"\d+ (?:passed|failed|errors?|skipped|xfailed|xpassed|deselected|warnings?|rerun"
    r"|subtests? (?:passed|failed|skipped))"
)
_COLLECTED = r"no tests ran|(?:no tests|\d+(?:/\d+)? tests?) collected(?: \(\d+ deselected\))?"
# pytest's last line, bare under -q and between rules otherwise (_pytest/terminal.py); from a
# minute on it gives the time a second way in brackets.
_PYTEST = re.compile(
    rf"^(?P<left>=+ )?(?P<counts>(?:{_COUNT}|{_COLLECTED})(?:, {_COUNT})*)"
    r" in \d+\.\d\ds(?: \((?:\d+ days?, )?\d+:\d\d:\d\d\))?(?P<right> =+)?(?=\r?$)",
    re.MULTILINE,
)
# unittest's last but one line (unittest/runner.py).
_UNITTEST = re.compile(r"^(Ran \d+ tests?) in \d+\.\d{3}s(?=\r?$)", re.MULTILINE)


def head(text: str, max_chars: int, suffix: str) -> str:
    """Returns the first ``max_chars`` characters, followed by ``suffix`` where that left any out.

    The suffix comes on top, so the result may be ``max_chars + len(suffix)`` characters long.

    Raises:
        InvalidArgumentError: ``max_chars`` is negative.
    """
    if max_chars < 0:
        raise InvalidArgumentError(f"max_chars must be at least 0, got {max_chars}")
    return text if len(text) <= max_chars else text[:max_chars] + suffix


def scrub_runner_times(text: str) -> str:
    """Sets the durations in test runners' summary lines to zero and leaves all else as it is.

    ``=== 3 passed in 0.12s ===`` becomes ``=== 3 passed in 0.00s ===``, with the rules redrawn to
    the line's own width, since pytest draws them shorter beside a longer time. ``Ran 3 tests in
    0.012s`` becomes ``Ran 3 tests in 0.000s``.
    """
    return _UNITTEST.sub(r"\1 in 0.000s", _PYTEST.sub(_scrub_pytest, text))


def _scrub_pytest(match: re.Match[str]) -> str:
    summary = f"{match['counts']} in 0.00s"
    left, right = match["left"] or "", match["right"] or ""
    # One mark is the least that pytest draws: there the line was too long for a width to show.
    if len(left) > len("= ") and right:
        num_marks = len(match[0]) - len(summary) - 2
        left = "=" * (num_marks // 2) + " "
        right = " " + "=" * (num_marks - num_marks // 2)
    return left + summary + right
