"""What the toolset ``heavy`` remembers of an episode: answers given, notes, calls that failed.

All of it is JSON in `ToolContext.state`, and so part of snapshots and forks.
"""

import hashlib
from collections.abc import MutableMapping
from typing import Any

from coding_gym.calls import ToolCall
from coding_gym.tools.call_arguments import text
from coding_gym.tools.toolset import Refusal, ToolContext

_MIN_CHARS = 200  # shorter answers are as short as saying that they are the same
_RECENT = 20  # calls; what came before may have left the policy's context
_NOTES_EVERY = 10  # calls
_MAX_NOTES = 20
_MAX_NOTE_CHARS = 500
# How many failures of a tool in a row bring a hint, and which.
_HINTS = {
    "edit": (
        2,
        "show the lines with `bash` (sed -n), copy `old` exactly from there, and replace a whole "
        "statement or function at once",
    ),
    "create": (2, "`create` is for new files only; look with `bash` (ls) at what there is"),
    "bash": (
        3,
        "read the first error again, try something smaller, and check names with `repo_map`",
    ),
    "find_definition": (2, "look for a part of the name with `bash` (grep -rn PART src)"),
    "find_references": (2, "look for a part of the name with `bash` (grep -rn PART src)"),
    "locate_fault": (
        2,
        "run the tests with `bash` first and name one that fails, or write a test that shows the "
        "problem",
    ),
    "": (2, 'a call looks like {"name": "bash", "arguments": {"command": "ls"}}'),
}


def remembered(call: ToolCall, content: str, state: MutableMapping[str, Any], *, ok: bool) -> str:
    """Counts a call, and returns what the policy is told: its number, notes, answer, hint.

    An answer that is the same as a recent one is replaced by that one's number.
    """
    number = state["calls"] = state.get("calls", 0) + 1
    heading = f"[call {number}]\n"
    if number % _NOTES_EVERY == 0 and state.get("notes"):
        heading += f"{shown_notes(state)}\n\n"
    return heading + _condensed(call, content, number, state) + _hint(call, state, ok=ok)


def note(call: ToolCall, context: ToolContext) -> str:
    """Keeps a note."""
    said = " ".join(text(call, "text").split())
    notes = context.state.setdefault("notes", [])
    if not said:
        raise Refusal("`text` must not be empty")
    if len(said) > _MAX_NOTE_CHARS:
        raise Refusal(f"a note has at most {_MAX_NOTE_CHARS} characters, got {len(said)}")
    if len(notes) == _MAX_NOTES:
        del notes[0]
    notes.append(said)
    return f"noted ({len(notes)})"


def notes(call: ToolCall, context: ToolContext) -> str:  # noqa: ARG001 - one signature
    """Returns all notes."""
    return shown_notes(context.state) if context.state.get("notes") else "There are no notes."


def shown_notes(state: MutableMapping[str, Any]) -> str:
    """Returns the notes as text."""
    return "\n".join(["Your notes:", *(f"- {said}" for said in state["notes"])])


def _condensed(call: ToolCall, content: str, number: int, state: MutableMapping[str, Any]) -> str:
    if len(content) < _MIN_CHARS:
        return content
    digest = hashlib.sha256(content.encode("utf-8", "surrogatepass")).hexdigest()[:16]
    seen = {k: v for k, v in state.get("seen", {}).items() if number - v <= _RECENT}
    state["seen"] = seen
    if digest in seen:
        return f"({call.name}: the same as the answer to call {seen[digest]})"
    seen[digest] = number
    return content


def _hint(call: ToolCall, state: MutableMapping[str, Any], *, ok: bool) -> str:
    failures = state.setdefault("failures", {})
    tool = call.name if call.name in _HINTS and not call.error else ""
    if ok:
        failures.pop(tool, None)
        return ""
    failures[tool] = failures.get(tool, 0) + 1
    every, hint = _HINTS[tool]
    return f"\nHint: {hint}." if failures[tool] % every == 0 else ""
