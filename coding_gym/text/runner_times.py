"""Durations in the summaries of test runners for other languages than Python, set to zero."""

import re

_SECONDS = r"(?:\d+m )?\d+(?:\.\d+)?s"

# Each keeps what its groups hold and puts a zero of the runner's own form between them.
_LINES: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(rf"^{pattern}(?=\r?$)", re.MULTILINE), zero)
    for pattern, zero in (
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


def scrub_other_runners(text: str) -> str:
    r"""Sets the durations that cargo, JUnit 4, node and go print to zero; leaves all else.

    >>> scrub_other_runners("test result: ok. 3 passed; 0 failed; finished in 0.01s")
    'test result: ok. 3 passed; 0 failed; finished in 0.00s'
    >>> scrub_other_runners("Time: 1,234.5\nTime: now")
    'Time: 0\nTime: now'
    """
    for pattern, zero in _LINES:
        text = pattern.sub(zero, text)
    return text
