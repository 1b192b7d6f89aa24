"""The debugger session of the toolset ``pdb``: what is kept between calls, and how it goes on.

No process outlives a call. What is kept is the program, the commands and the breakpoints; each call
runs the program again under pdb inside the sandbox and shows only what is new. So a session is part
of every snapshot, and a fork of an episode continues it.
"""

import re
import shlex
from collections.abc import Mapping
from typing import Any

from coding_gym.tools.programs import Reply, ask, int_of, ints_of, rows_of, strings_of, text_of
from coding_gym.tools.toolset import Refusal, ToolContext, quoted

_MAX_COMMANDS = 60  # in one session: each call plays them all again
_MAX_LINES = 10  # in one call
_MAX_LINE_CHARS = 1000
_MAX_PATH_CHARS = 4096
_MAX_BREAKPOINTS = 50
_MAX_DIGEST_CHARS = 64
_MAX_OUTPUT_CHARS = 10_000  # of one command
_RESERVE_S = 5.0  # or half of the time limit: for what is done before and after the program
_DEFAULT = {"kind": "pytest", "arguments": ["-x", "-q", "--tb=short"]}
_STARTS = ("start", "restart", "run")
_BREAKPOINT = re.compile(r"(b|break|tbreak)\s+([^\s,:][^,:]*):(\d{1,7})\s*(?:,\s*(.+))?")
_PYTHON = ("python", "python3")


def pdb_answer(command: str, context: ToolContext) -> str:
    """Plays commands in the episode's session and returns what they gave.

    Raises:
        Refusal: The commands cannot be played.
        SandboxError: The sandbox is closed or died.
    """
    lines = _lines(command)
    session = dict(context.state.get("pdb") or _new_session(_DEFAULT, []))
    if lines[0].split()[0] in _STARTS:
        session = _new_session(_entry(lines.pop(0), session["entry"]), session["current"])
    if not session["digests"]:
        lines = _without_breakpoints(lines, session)
    if len(session["commands"]) + len(lines) > _MAX_COMMANDS:
        raise Refusal(f"a session has at most {_MAX_COMMANDS} commands; begin anew with `restart`")
    limit_s = context.command_timeout_s
    request = {
        "entry": session["entry"],
        "old": session["commands"],
        "new": lines,
        "digests": session["digests"],
        "first": session["first"],
        "current": session["current"],
        "fingerprint": session["fingerprint"] if session["digests"] else "",
        "seconds": max(limit_s - _RESERVE_S, limit_s / 2),
    }
    reply = ask(context, "debugging", request)
    if reply.problem:
        raise Refusal(
            f"the program could not be debugged: {reply.problem}; the session is as before"
        )
    answer = _told(session, lines, reply)
    context.state["pdb"] = session
    return answer


def _new_session(entry: Mapping[str, Any], breakpoints: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "entry": dict(entry),
        "commands": [],
        "digests": [],
        "first": breakpoints,
        "current": breakpoints,
        "fingerprint": "",
    }


def _breakpoints(value: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Returns the breakpoints of a reply that can be set again."""
    return [
        {
            "file": text_of(row["file"], _MAX_PATH_CHARS),
            "line": int_of(row["line"]),
            "condition": text_of(row.get("condition"), _MAX_LINE_CHARS),
            "enabled": row.get("enabled") is not False,
            "temporary": row.get("temporary") is True,
            "text": text_of(row.get("text")),
        }
        for row in rows_of(value.get("breakpoints"))[:_MAX_BREAKPOINTS]
        if isinstance(row.get("file"), str) and isinstance(row.get("line"), int)
    ]


def _lines(command: str) -> list[str]:
    lines = [line.rstrip() for line in command.splitlines() if line.strip()]
    if not lines:
        raise Refusal("`command` must hold a debugger command, such as w")
    if len(lines) > _MAX_LINES or max(map(len, lines)) > _MAX_LINE_CHARS or "\0" in command:
        raise Refusal(
            f"`command` must be at most {_MAX_LINES} lines of {_MAX_LINE_CHARS} characters"
        )
    if any(line.split()[0] in _STARTS for line in lines[1:]):
        raise Refusal("`start` and `restart` must be the first line")
    return lines


def _entry(line: str, before: Mapping[str, Any]) -> Mapping[str, Any]:
    """Returns the program that a line such as ``start -m pytest tests`` names."""
    try:
        verb, *words = shlex.split(line)
    except ValueError as error:
        raise Refusal(f"{quoted(line)} cannot be read: {error}") from error
    if words and words[0] in _PYTHON:
        del words[0]
    if words[:1] == ["-m"] and len(words) > 1:
        words = words[1:]
        if words[0] != "pytest":
            return {"kind": "module", "arguments": words}
    elif words and words[0].endswith(".py") and verb == "start":
        return {"kind": "script", "arguments": words}
    elif not words:
        return before if verb != "start" or before["kind"] == "pytest" else _DEFAULT
    elif words[0] not in ("pytest", "py.test") and "::" not in words[0]:
        raise Refusal(
            "`start` takes FILE.py and its arguments, -m MODULE and its arguments, or a test such "
            f"as tests/test_x.py::test_y, got {quoted(line)}"
        )
    arguments = words[1:] if words[0] in ("pytest", "py.test") else words
    return {"kind": "pytest", "arguments": [*arguments, "-q", "--tb=short"]}


def _without_breakpoints(lines: list[str], session: dict[str, Any]) -> list[str]:
    """Takes the breakpoints that lead the first commands, so that the program starts with them."""
    for number, line in enumerate(lines):
        match = _BREAKPOINT.fullmatch(line.strip())
        if match is None:
            return lines[number:]
        verb, file, at, condition = match.groups()
        point = {
            "file": file.strip(),
            "line": int(at),
            "condition": condition or "",
            "enabled": True,
            "temporary": verb == "tbreak",
        }
        session["first"] = [*session["first"], point]
    return []


def _told(session: dict[str, Any], lines: list[str], reply: Reply) -> str:
    """Brings the session up to date and returns what the policy is told."""
    value = reply.value
    how = value.get("how")
    if value.get("restarted") is True:
        session.update(commands=[], digests=[], first=session["current"])
    num_played = int_of(value.get("consumed")) - len(session["commands"])
    parts = _remarks(session, value)
    outputs = strings_of(value.get("outputs"), max_chars=_MAX_OUTPUT_CHARS)
    parts += [output.strip("\n") for output in outputs]
    digests = _digests(value)
    session["fingerprint"] = text_of(value.get("fingerprint"), _MAX_DIGEST_CHARS)
    if how == "stopped":
        session["commands"] = [*session["commands"], *lines]
        session["digests"] = digests
        session["current"] = _breakpoints(value)
    elif how == "late":
        parts.append(_late(session, lines, digests, num_played))
    else:
        session.update(commands=[], digests=[], current=_breakpoints(value))
        session["first"] = session["current"]
        unread = lines[max(0, num_played) :]
        left = f" Not played: {'; '.join(unread)}." if unread else ""
        parts.append(f"[the next command starts it again.{left}]")
    return "\n".join(part for part in parts if part) or "(nothing was printed)"


def _digests(value: Mapping[str, Any]) -> list[str]:
    """Returns what tells the outputs apart; "" for one that differed from the last time."""
    differed = set(ints_of(value.get("changed")))
    known = strings_of(value.get("digests"), max_chars=_MAX_DIGEST_CHARS)
    return ["" if number in differed else digest for number, digest in enumerate(known)]


def _late(session: dict[str, Any], lines: list[str], known: list[str], num_played: int) -> str:
    """Keeps what came before the command that does not come back."""
    kept = max(0, num_played - 1)
    session["commands"] = [*session["commands"], *lines[:kept]]
    session["digests"] = known[: len(session["commands"]) + 1] if num_played > 0 else []
    if not session["digests"]:
        session["commands"] = []
    what = f"`{lines[kept]}`" if num_played > 0 and kept < len(lines) else "the program's start"
    return f"[killed: {what} took too long; the session is as it was before]"


def _remarks(session: Mapping[str, Any], value: Mapping[str, Any]) -> list[str]:
    remarks = []
    if value.get("restarted") is True:
        kept = ", ".join(f"{p['file']}:{p['line']} `{p['text']}`" for p in session["current"])
        remarks.append(
            "[the code changed: the session began anew"
            + (f", with the breakpoints {kept}]" if kept else "]")
        )
    remarks += [f"[no breakpoint {row}]" for row in strings_of(value.get("refused"))]
    commands = session["commands"]
    names = [
        f"`{commands[number - 1]}`" if number else "the start"
        for number in ints_of(value.get("changed"))
        if 0 <= number <= len(commands)
    ][:5]
    if names:
        remarks.append(f"[played again, {', '.join(names)} gave something else than before]")
    return remarks
