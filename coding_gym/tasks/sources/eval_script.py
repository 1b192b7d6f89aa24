"""The shell script with which SWE-bench's harness evaluates one row.

Such a script activates an environment, writes the hidden tests with ``git apply`` from a
here-document, and runs them between two markers, which the readers of its log know.
"""

import re
from typing import NamedTuple

_MARKED = re.compile(
    r"^(?::|echo) ['\"]?>>>>> Start Test Output['\"]?\n(.*?\S.*?)"
    r"(?:^(?::|echo) ['\"]?>>>>> End Test Output['\"]?$|\Z)",
    re.MULTILINE | re.DOTALL,
)
# The grader has written the hidden tests, and nothing else may write them while they run.
_WRITES_TESTS = re.compile(
    r"^git checkout [0-9a-f]{7,40}\b[^\n]*\n|^git apply [^\n<]*<<-?\s*(['\"]?)(\w+)\1\n.*?^\2\n",
    re.MULTILINE | re.DOTALL,
)


class EvalScript(NamedTuple):
    """What of an evaluation script runs.

    Attributes:
        command: The script up to the end of the tests, without what writes the hidden tests.
        tests: The lines between the markers.
    """

    command: str
    tests: str


def read_eval_script(text: str) -> EvalScript | None:
    """Returns what a script runs; None where there is no command between its markers."""
    text = _WRITES_TESTS.sub("", text.replace("\r\n", "\n") + "\n")
    marked = _MARKED.search(text)
    return EvalScript(text[: marked.end()].rstrip(), marked[1].strip()) if marked else None
