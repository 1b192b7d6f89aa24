"""The driver's commands: ``survey``, ``sources``, ``try``, ``apply``, ``more``.

Each reads a packed request from standard input and prints one line for people and one slice of a
packed reply; ``more START`` prints a later slice of the last reply.
"""

# ruff: noqa: TID252 - in the sandbox this package has another name

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Any

from .clock import begin_request
from .place import REPLY, TREE, recall, remember
from .survey import survey
from .trial import Trial
from .verdicts import PLAUSIBLE, UNTRIED
from .wire import format_slice, pack, unpack
from .written import write_edits

_SLICE_CHARS = 1750


def main(arguments: list[str]) -> None:
    """Runs one command."""
    begin_request()
    command = arguments[0]
    if command == "more":
        _print("", REPLY.read_text(encoding="ascii"), int(arguments[1]))
        return
    request = unpack(sys.stdin.read())
    summary, reply = _COMMANDS[command](request)
    packed = pack(reply)
    REPLY.write_text(packed, encoding="ascii")
    _print(summary, packed, 0)


def _print(summary: str, packed: str, start: int) -> None:
    text = format_slice(packed, start, _SLICE_CHARS)
    sys.__stdout__.write(f"{summary[:200]}\n{text}\n")  # type: ignore[union-attr]


def _survey(request: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    found = survey(
        Path.cwd(),
        shlex.split(request["arguments"]),
        seconds=request["seconds"],
        test_s=request["test_s"],
    )
    if found is None:
        return "the visible tests could not be run", {"error": "the run died"}
    files = len(found["files"])
    summary = f"{found['num_failed']} failed, {found['num_passed']} passed, "
    return summary + f"{files} files are run by failing tests", found


def _sources(request: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    texts = {}
    for path in request["paths"]:
        try:
            texts[path] = (TREE / path).read_bytes().decode("utf-8")
        except (OSError, UnicodeDecodeError):
            continue  # what cannot be read cannot be repaired
    return f"read {', '.join(texts)}", {"texts": texts}


def _try(request: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    state = recall()
    trial = Trial(state, request)
    verdicts = trial.run()
    if not request["full"]:  # times stay here: what a policy sees must not depend on the clock
        remember({**state, "spent": trial.watch.spent()})
    codes = "".join(verdict.code for verdict in verdicts)
    fixed = {str(i): verdict.fixed for i, verdict in enumerate(verdicts) if verdict.fixed}
    num_tried = len(codes) - codes.count(UNTRIED)
    summary = f"tried {num_tried} edits, {codes.count(PLAUSIBLE)} make all tests pass"
    return summary, {"codes": codes, "fixed": fixed}


def _apply(request: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    workspace = Path(recall()["workspace"])
    write_edits([[str(workspace / path), *rest] for path, *rest in request["edits"]])
    return "edited " + ", ".join(sorted({edit[0] for edit in request["edits"]})), {}


_COMMANDS = {"survey": _survey, "sources": _sources, "try": _try, "apply": _apply}

if __name__ == "__main__":
    main(sys.argv[1:])
