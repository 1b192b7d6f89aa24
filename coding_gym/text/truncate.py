"""Cutting texts to a length, replacing lone surrogates, and zeroing the durations of test runs.

| name | keeps |
|---|---|
| `head` | the first characters |
| `ends` | the first and the last ones, with a text between them that says how many are missing |
"""

import re

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
_SECONDS = r"(?:\d+m )?\d+(?:\.\d+)?s"

# Each entry keeps what its groups hold and puts a zero of the runner's own form between them.
_OTHER_RUNNERS: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(rf"^{pattern}(?=\r?$)", re.MULTILINE), zero)
    for pattern, zero in (
        # unittest, its last but one line (unittest/runner.py)
        (r"(Ran \d+ tests? in )\d+\.\d{3}s", r"\g<1>0.000s"),
        # cargo: what compiled and what ran
        (rf"( *Finished .{{1,200}} target\(s\) in ){_SECONDS}", r"\g<1>0.00s"),
        (rf"(test result: .{{1,200}}; finished in ){_SECONDS}", r"\g<1>0.00s"),
        # JUnit 4, whose numbers have commas from a thousand on
        (r"(Time: )\d[\d,]*(?:\.\d+)?", r"\g<1>0"),
        # node, as TAP and as its reporter for people
        (r"( *(?:# |\u2139 )?duration_ms:? )\d+(?:\.\d+)?", r"\g<1>0"),
        (r"( *[✔✖▶﹣] .{1,400} \()\d+(?:\.\d+)?(ms\)(?: # .{1,40})?)", r"\g<1>0\g<2>"),
        # go
        (r"( *--- (?:PASS|FAIL|SKIP): \S{1,400} \()\d+\.\d\d(s\))", r"\g<1>0.00\g<2>"),
        (r"((?:ok|FAIL)[ \t]+\S{1,400}[ \t]+)\d+\.\d{3}s", r"\g<1>0.000s"),
    )
)


def head(text: str, max_chars: int, suffix: str) -> str:
    """Returns the first ``max_chars`` characters, followed by ``suffix`` where that left any out.

    The suffix comes on top, so the result may be ``max_chars + len(suffix)`` characters long.

    >>> head("abcdef", 4, "...")
    'abcd...'
    """
    return text if len(text) <= max_chars else text[:max_chars] + suffix


def ends(text: str, max_chars: int, middle: str) -> str:
    """Returns the first and the last characters, ``max_chars`` in all, around ``middle``.

    Where ``max_chars`` is odd the head has one more. The middle comes on top; ``{left_out}`` in it
    becomes the number of characters that are missing. mini-swe-agent shows long outputs so.

    >>> ends("abcdefghij", 4, " [{left_out} more] ")
    'ab [6 more] ij'
    >>> ends("abcd", 4, "...")
    'abcd'
    """
    if len(text) <= max_chars:
        return text
    first, last = split_ends(text, max_chars)
    return first + middle.replace("{left_out}", str(len(text) - max_chars)) + last


def split_ends(text: str, max_chars: int) -> tuple[str, str]:
    """Returns the two pieces that `ends` leaves of a text of ``max_chars`` characters or more.

    >>> split_ends("abcdefghij", 5)
    ('abc', 'ij')
    """
    num_last = max_chars // 2
    return text[: max_chars - num_last], text[len(text) - num_last :]


def scrub_runner_times(text: str) -> str:
    """Sets the durations in test runners' summary lines to zero and leaves all else as it is.

    ``=== 3 passed in 0.12s ===`` becomes ``=== 3 passed in 0.00s ===``, with the rules redrawn to
    the line's own width, since pytest draws them shorter beside a longer time. ``Ran 3 tests in
    0.012s`` becomes ``Ran 3 tests in 0.000s``. So do the durations that cargo, JUnit 4, node and go
    print.

    >>> scrub_runner_times("test result: ok. 3 passed; 0 failed; finished in 0.01s")
    'test result: ok. 3 passed; 0 failed; finished in 0.00s'
    >>> scrub_runner_times("Time: 1,234.5")
    'Time: 0'
    """
    text = _PYTEST.sub(_scrub_pytest, text)
    for pattern, zero in _OTHER_RUNNERS:
        text = pattern.sub(zero, text)
    return text


def _scrub_pytest(match: re.Match[str]) -> str:
    summary = f"{match['counts']} in 0.00s"
    left, right = match["left"] or "", match["right"] or ""
    # One mark is the least that pytest draws: there the line was too long for a width to show.
    if len(left) > len("= ") and right:
        num_marks = len(match[0]) - len(summary) - 2
        left = "=" * (num_marks // 2) + " "
        right = " " + "=" * (num_marks - num_marks // 2)
    return left + summary + right


def well_formed(text: str) -> str:
    """Returns ``text`` with lone surrogates replaced by U+FFFD; pairs become their character.

    JSON escapes and careless decoding produce surrogates, and UTF-8 has no form for them.
    """
    if text.isascii():
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
