"""The shell script with which SWE-bench's harness evaluates one row.

Such a script activates an environment, writes the hidden tests with ``git apply`` from a
here-document, and runs them between two markers for the parser of its log.
"""

import re

_MARKED = re.compile(
    r"^(?::|echo) ['\"]?>>>>> Start Test Output['\"]?\n(.*?\S.*?)"
    r"(?:^(?::|echo) ['\"]?>>>>> End Test Output['\"]?$|\Z)",
    re.MULTILINE | re.DOTALL,
)
# The grader has written the hidden tests already; the script must not write them again.
_WRITES_TESTS = re.compile(
    r"^git checkout [0-9a-f]{7,40}\b[^\n]*\n|^git apply [^\n<]*<<-?\s*(['\"]?)(\w+)\1\n.*?^\2\n",
    re.MULTILINE | re.DOTALL,
)


def read_eval_script(text: str) -> tuple[str, str] | None:
    """Returns the commands of a script; None if there are none between its markers.

    The first text is the script up to the end of the tests, without commands that write hidden
    tests; the second one has the lines between the markers.
    """
    text = _WRITES_TESTS.sub("", text.replace("\r\n", "\n") + "\n")
    marked = _MARKED.search(text)
    return (text[: marked.end()].rstrip(), marked[1].strip()) if marked else None
