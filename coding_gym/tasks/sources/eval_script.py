"""Reading the shell script with which SWE-bench's harness evaluates one row.

Such a script activates an environment, installs the project, writes the hidden tests with
``git apply`` from a here-document, and runs them between two markers. Only what the row alone
knows is taken: how the project is installed, and what runs its tests.
"""

import re
from dataclasses import dataclass

_START, _END = ">>>>> Start Test Output", ">>>>> End Test Output"
_HERE_DOCUMENT = re.compile(r"<<-?\s*'?\"?(\w+)'?\"?\s*$")
# What prepares a container, or shows its state to whoever reads the log.
_SCAFFOLD = re.compile(
    r"#!|set [-+]|source |conda |cd /testbed\b|:( |$)|"
    r"git (config|status|show|checkout|apply|-c|diff)\b"
)
_EXPORT = re.compile(r"export \w+=")


@dataclass(frozen=True, slots=True)
class EvalScript:
    """What an evaluation script does beside its scaffold.

    Attributes:
        install_commands: What comes before the hidden tests are written.
        test_command: What runs them, with the exports and builds that it needs; one command a line.
    """

    install_commands: tuple[str, ...]
    test_command: str


def read_eval_script(text: str) -> EvalScript | None:
    """Returns what a script does; None where it has no command between its markers."""
    before: list[str] = []
    builds: list[str] = []
    tests: list[str] = []
    place = before
    for line in _without_documents(text):
        if line.startswith("git apply"):
            place = builds
        elif _START in line:
            place = tests
        elif _END in line:
            break
        elif line and not _SCAFFOLD.match(line):
            place.append(line)
    if not tests:
        return None
    exports = [line for line in before if _EXPORT.match(line)]
    installs = tuple(line for line in before if not _EXPORT.match(line))
    return EvalScript(installs, "\n".join(exports + builds + tests))


def _without_documents(text: str) -> list[str]:
    """Returns the script's lines without the content of here-documents, stripped."""
    lines: list[str] = []
    end = ""
    for line in text.split("\n"):
        if end:
            end = "" if line.strip() == end else end
            continue
        lines.append(line.strip())
        if match := _HERE_DOCUMENT.search(line):
            end = match[1]
    return lines
