"""The commands ``survey``, ``trace`` (what each test runs) and ``try`` (tests of other programs).

Each reads a JSON request from standard input and writes a JSON reply to the file that it names.
"""

# ruff: noqa: TID252 - in the sandbox this package has another name

from __future__ import annotations

import json
import sys
from pathlib import Path

from .attempts import attempt_all
from .line_coverage import measure_coverage, trace

_COMMANDS = {"survey": measure_coverage, "trace": trace, "try": attempt_all}


def main() -> None:
    """Runs one command."""
    request = json.loads(sys.stdin.buffer.read().decode())
    reply = _COMMANDS[request["command"]](request)
    Path(request["reply"]).write_text(json.dumps(reply), encoding="utf-8")


if __name__ == "__main__":
    main()
