"""Debugger sessions: the program runs again for each call, and earlier commands are replayed.

No process outlives a call. A session is a JSON object that the host keeps between calls: the
program to run, the commands so far, digests of their outputs, the breakpoints, and a fingerprint of
the code. `play` runs the program under pdb, replays the old commands, and replies with the output
of the new ones. The session is part of every snapshot, so a fork of an episode continues it.
"""

# ruff: noqa: PTH109, PTH118, PTH120, PTH123, SIM115, B905 - few imports, which the program sees

from __future__ import annotations

import bdb
import hashlib
import linecache
import os
import pdb
import re
import runpy
import shlex
import signal
import sys
import tempfile
import traceback
import types
from typing import TYPE_CHECKING, Any

from coding_gym.tools.inside.code_map import source_files

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

_MAX_COMMANDS = 60  # in one session: each call replays them all
_MAX_LINES = 10  # in one call
_MAX_LINE_CHARS = 1000
_MAX_BREAKPOINTS = 50
_MAX_NAMED = 5  # commands named in a remark
_HEAD, _TAIL = 6000, 3000  # bytes of one command's output
_STARTS = ("start", "restart", "run")
_BREAKPOINT = re.compile(r"(b|break|tbreak)\s+([^\s,:][^,:]*):(\d{1,7})\s*(?:,\s*(.+))?")
_VOLATILE = re.compile(rb"0x[0-9a-fA-F]+| in \d+\.\d+s")
_POINT = {"file": str, "line": int, "condition": str, "enabled": bool, "temporary": bool}
_PYTEST = {"kind": "pytest", "arguments": ["-x", "-q", "--tb=short"]}


class Refusal(Exception):
    """Why commands are not played."""


def play(request: dict[str, Any], reply: Callable[[Any], None]) -> None:
    """Plays a session and replies with the output of its new commands.

    Args:
        request: ``session``, as the last reply had it, or None; ``command``, the new commands, one
            a line; ``seconds`` that the program may take.
        reply: Takes ``text`` and ``ok``; and where the commands were played, the ``session``.
    """
    saved = request["session"]
    session = saved if _is_session(saved) else _new_session(_PYTEST, [])
    try:
        session, lines = _begun(session, request["command"])
    except Refusal as why:
        reply({"ok": False, "text": str(why)})
    remarks = []
    fingerprint = _fingerprint()
    if session["digests"] and session["fingerprint"] != fingerprint:
        points = [f"{p['file']}:{p['line']} `{p.get('text', '')}`" for p in session["current"]]
        kept = f", with the breakpoints {', '.join(points)}" if points else ""
        remarks.append(f"[the code changed: the session began anew{kept}]")
        session.update(commands=[], digests=[], first=session["current"])
    session["fingerprint"] = fingerprint
    terminal = Terminal([*session["commands"], *lines])
    debugger = Debugger(terminal, os.getcwd())

    def report(how: str, outputs: list[bytes]) -> None:
        parts = remarks + [f"[no breakpoint {refused}]" for refused in debugger.refused]
        parts += _update(session, lines, how, outputs, debugger.listed())
        text = "\n".join(part for part in parts if part) or "(nothing was printed)"
        reply({"ok": True, "text": text, "session": session})

    terminal.on_end = report
    signal.signal(signal.SIGALRM, lambda *_: terminal.end("late"))
    signal.setitimer(signal.ITIMER_REAL, request["seconds"])
    debugger.set_first(session["first"])
    _run_program(session["entry"], terminal, debugger)
    terminal.end("ended")


def _new_session(entry: dict[str, Any], breakpoints: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "entry": entry,
        "commands": [],
        "digests": [],
        "first": breakpoints,  # set before the program starts
        "current": breakpoints,  # at the end of the last call
        "fingerprint": "",
    }


def _is_session(value: Any) -> bool:
    """Returns whether a value can be played; the program may have forged the last reply."""
    empty = _new_session(_PYTEST, [])
    if not isinstance(value, dict) or value.keys() != empty.keys():
        return False
    if any(not isinstance(value[key], type(empty[key])) for key in empty):
        return False
    entry, points = value["entry"], [*value["first"], *value["current"]]
    texts = [*value["commands"], *value["digests"]]
    if entry.get("kind") not in [*_PROGRAMS] or not isinstance(entry.get("arguments"), list):
        return False
    return all(isinstance(text, str) for text in texts + entry["arguments"]) and all(
        isinstance(point, dict) and all(isinstance(point.get(k), _POINT[k]) for k in _POINT)
        for point in points
    )


def _begun(session: dict[str, Any], command: str) -> tuple[dict[str, Any], list[str]]:
    """Returns the session that new commands belong to, and those of them that are played."""
    lines = [line.rstrip() for line in command.splitlines() if line.strip()]
    if not lines:
        raise Refusal("`command` must hold a debugger command, such as w")
    if len(lines) > _MAX_LINES or max(map(len, lines)) > _MAX_LINE_CHARS or "\0" in command:
        raise Refusal(
            f"`command` must be at most {_MAX_LINES} lines of {_MAX_LINE_CHARS} characters"
        )
    if any(line.split()[0] in _STARTS for line in lines[1:]):
        raise Refusal("`start` and `restart` must be the first line")
    if lines[0].split()[0] in _STARTS:
        session = _new_session(_entry(lines.pop(0), session["entry"]), session["current"])
    if not session["digests"]:
        lines = _without_breakpoints(lines, session)
    if len(session["commands"]) + len(lines) > _MAX_COMMANDS:
        raise Refusal(f"a session has at most {_MAX_COMMANDS} commands; begin anew with `restart`")
    return session, lines


def _entry(line: str, before: dict[str, Any]) -> dict[str, Any]:
    """Returns the program that a line such as ``start -m pytest tests`` names."""
    try:
        verb, *words = shlex.split(line)
    except ValueError as error:
        raise Refusal(f"{line!r:.200} cannot be read: {error}") from error
    if words and words[0] in ("python", "python3"):
        del words[0]
    if words[:1] == ["-m"] and len(words) > 1:
        words = words[1:]
        if words[0] != "pytest":
            return {"kind": "module", "arguments": words}
    elif words and words[0].endswith(".py") and verb == "start":
        return {"kind": "script", "arguments": words}
    elif not words:
        return before if verb != "start" or before["kind"] == "pytest" else _PYTEST
    elif words[0] not in ("pytest", "py.test") and "::" not in words[0]:
        raise Refusal(
            "`start` takes FILE.py and its arguments, -m MODULE and its arguments, or a test such "
            f"as tests/test_x.py::test_y, got {line!r:.200}"
        )
    arguments = words[1:] if words[0] in ("pytest", "py.test") else words
    return {"kind": "pytest", "arguments": [*arguments, "-q", "--tb=short"]}


def _without_breakpoints(lines: list[str], session: dict[str, Any]) -> list[str]:
    """Moves the breakpoints among the first commands to those that the program starts with."""
    for number, line in enumerate(lines):
        match = _BREAKPOINT.match(line.strip())
        if match is None or match.end() != len(line.strip()):
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


def _fingerprint() -> str:
    """Returns a digest of all Python code in the tree."""
    digest = hashlib.sha256()
    for path, data in source_files()[0]:
        if path.endswith((".py", ".pyi")):
            name = os.fsencode(path)
            digest.update(b"%d %s %d %s" % (len(name), name, len(data), data))
    return digest.hexdigest()[:16]


def _update(
    session: dict[str, Any],
    lines: list[str],
    how: str,
    outputs: list[bytes],
    breakpoints: list[dict[str, Any]],
) -> list[str]:
    """Updates a session after its commands were played, and returns the parts of the answer.

    Args:
        session: The session; a command whose output varies between calls loses its digest, so that
            this is reported once.
        lines: Its new commands.
        how: ``stopped`` where the program waits for a command, ``ended`` where it did, ``late``
            where it did not come back in time.
        outputs: Output of the start and of each command that was read.
        breakpoints: Those at the end.
    """
    commands, known = session["commands"], session["digests"]
    digests = [hashlib.sha256(_VOLATILE.sub(b"", o)).hexdigest()[:16] for o in outputs]
    varied = [n for n, (now, then) in enumerate(zip(digests, known)) if then and now != then]
    names = [f"`{commands[n - 1]}`" if n else "the start" for n in varied if n <= len(commands)]
    digests = ["" if n in varied else digest for n, digest in enumerate(digests)]
    parts = []
    if names:
        named = ", ".join(names[:_MAX_NAMED])
        parts.append(f"[played again, {named} gave something else than before]")
    first_new = min(len(commands) + 1 if known else 0, len(outputs) - 1)
    parts += [o.decode("utf-8", "replace").strip("\n") for o in outputs[first_new:]]
    num_read = len(outputs) - 1 - len(commands)
    if how == "stopped":
        session.update(commands=commands + lines, digests=digests, current=breakpoints)
    elif how == "late":
        done = max(0, num_read - 1)
        late = f"`{lines[done]}`" if 0 < num_read <= len(lines) else "the program's start"
        parts.append(f"[killed: {late} took too long; the session is as it was before]")
        commands = commands + lines[:done] if num_read > 0 else []
        session.update(
            commands=commands, digests=digests[: len(commands) + 1] if num_read > 0 else []
        )
    else:
        session.update(commands=[], digests=[], first=breakpoints, current=breakpoints)
        unread = lines[max(0, num_read) :]
        left = f" Not played: {'; '.join(unread)}." if unread else ""
        parts.append(f"[the next command starts it again.{left}]")
    return parts


class Terminal:
    """The debugger's standard input and output: a list of commands, and a log.

    Args:
        commands: The commands.

    Attributes:
        on_end: Takes how the session stands, see `_update`, and the output of the program's start
            and of each command that was read; ends the process.
    """

    def __init__(self, commands: list[str]) -> None:
        self.on_end: Callable[[str, list[bytes]], None] = lambda *_: os._exit(1)
        self._commands = commands
        self._log = tempfile.TemporaryFile()
        self._ends: list[int] = []  # sizes of the log after the start and after each command
        self._pid = os.getpid()
        for number in (1, 2):
            os.dup2(self._log.fileno(), number)
        for stream in (sys.stdout, sys.stderr):
            stream.reconfigure(line_buffering=True, errors="backslashreplace")  # type: ignore[union-attr]

    def readline(self) -> str:
        """Returns the next command; ends the session where there is none."""
        if os.getpid() != self._pid:  # a child of the program
            return "continue\n"
        if len(self._ends) == len(self._commands):
            self.end("stopped")
        self._mark()
        return self._commands[len(self._ends) - 1] + "\n"

    def write(self, text: str) -> int:
        """Adds output of the debugger to that of the program."""
        self._flush_program()
        os.write(self._log.fileno(), text.encode("utf-8", "backslashreplace"))
        return len(text)

    def begin_line(self) -> None:
        """Ends the line that the program has begun, if any."""
        self._flush_program()
        size = os.fstat(self._log.fileno()).st_size
        if size and os.pread(self._log.fileno(), 1, size - 1) != b"\n":
            self.write("\n")

    def flush(self) -> None:
        """Does nothing: `write` keeps nothing back."""

    def end(self, how: str) -> None:
        """Reports the session and ends this process."""
        if os.getpid() != self._pid:
            os._exit(0)
        self._mark()
        starts = [0, *self._ends]
        self.on_end(how, [self._output(*span) for span in zip(starts, self._ends)])

    def _mark(self) -> None:
        self._flush_program()
        self._ends.append(os.fstat(self._log.fileno()).st_size)

    def _output(self, start: int, end: int) -> bytes:
        size = end - start
        if size <= _HEAD + _TAIL:
            return os.pread(self._log.fileno(), size, start)
        head = os.pread(self._log.fileno(), _HEAD, start)
        tail = os.pread(self._log.fileno(), _TAIL, end - _TAIL)
        return b"%s\n[... %d bytes left out ...]\n%s" % (head, size - _HEAD - _TAIL, tail)

    @staticmethod
    def _flush_program() -> None:
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except Exception:  # noqa: BLE001, S112 - the program may have put anything there
                continue


class Debugger(pdb.Pdb):
    """Pdb on a `Terminal`, with breakpoints carried over and stacks that begin in the workspace.

    Args:
        terminal: Its input and output.
        root: The workspace.

    Attributes:
        goes_on: Whether the first stop, before anything has run, is passed over.
        refused: Breakpoints of the start that could not be set, and why.
    """

    def __init__(self, terminal: Terminal, root: str) -> None:
        machinery = ["importlib._bootstrap", "importlib._bootstrap_external"]  # stepped over
        files: Any = terminal
        super().__init__(stdin=files, stdout=files, nosigint=True, readrc=False, skip=machinery)
        self.prompt = ""
        self.goes_on = False
        self.refused: list[str] = []
        self._terminal = terminal
        self._root = root

    def set_first(self, breakpoints: list[dict[str, Any]]) -> None:
        """Sets the breakpoints that there are before the program starts."""
        for wanted in breakpoints:
            file = os.path.join(self._root, wanted["file"])
            problem = self.set_break(
                file, wanted["line"], wanted["temporary"], wanted["condition"] or None
            )
            if problem:
                self.refused.append(f"{wanted['file']}:{wanted['line']}: {problem}")
            elif not wanted["enabled"]:
                self.get_breaks(file, wanted["line"])[-1].disable()

    def listed(self) -> list[dict[str, Any]]:
        """Returns the breakpoints as `set_first` takes them, with the code of their lines."""
        found = [point for point in bdb.Breakpoint.bpbynumber if point is not None]
        return [
            {
                "file": os.path.relpath(p.file, self._root) if self._is_own(p.file) else p.file,
                "line": p.line,
                "condition": str(p.cond or ""),
                "enabled": bool(p.enabled),
                "temporary": bool(p.temporary),
                "text": linecache.getline(p.file, p.line).strip()[:160],
            }
            for p in found[:_MAX_BREAKPOINTS]
        ]

    def user_line(self, frame: FrameType) -> None:
        """Stops at a line, save at the one before all others where that is to be passed over."""
        if self.goes_on:
            self.goes_on = False
            self.set_continue()
        else:
            super().user_line(frame)

    def print_stack_entry(self, *arguments: Any, **named: Any) -> None:
        """Prints where the program stands, on a line of its own."""
        self._terminal.begin_line()
        super().print_stack_entry(*arguments, **named)

    def get_stack(self, f: Any, t: Any) -> Any:
        """Returns the stack from its first frame in the workspace, after a failure at the last."""
        stack, index = super().get_stack(f, t)
        own = [i for i, (frame, _) in enumerate(stack) if self._is_own(frame.f_code.co_filename)]
        if not own:
            return stack, index
        if t is not None:
            index = own[-1]
        return stack[own[0] :], index - own[0]

    def do_quit(self, arg: str) -> Any:
        """Ends the program."""
        del arg
        self.message("The program was ended.")
        self._terminal.end("ended")

    do_q = do_exit = do_EOF = do_quit  # noqa: N815 - pdb's names

    def do_run(self, arg: str) -> Any:
        """Says how the program is started anew."""
        del arg
        self.error("`restart` must be the first word of a call")

    do_restart = do_run

    def post_mortem(self, traceback: Any) -> None:
        """Stops where an exception was raised."""
        self.reset()
        self.interaction(None, traceback)

    def _is_own(self, name: str) -> bool:
        return name.startswith(self._root + os.sep) and "site-packages" not in name


def _run_program(entry: dict[str, Any], terminal: Terminal, debugger: Debugger) -> None:
    """Runs a program under a debugger until it ends."""
    sys.path.insert(0, os.getcwd())
    _call_from_program(debugger)
    try:
        _PROGRAMS[entry["kind"]](entry["arguments"], terminal, debugger)
    except SystemExit as left:
        terminal.write(f"The program exited with status {left.code}.\n")
    except BaseException as error:  # noqa: BLE001 - whatever the program raised is looked at
        sys.settrace(None)
        entries = traceback.extract_tb(error.__traceback__)
        own = [e for e in entries if e.filename[:1] != "<" and e.filename != bdb.__file__]
        terminal.write("Traceback (most recent call last):\n")
        terminal.write("".join(traceback.format_list(own)))
        terminal.write("".join(traceback.format_exception_only(type(error), error)))
        if error.__traceback__ is not None and own and not isinstance(error, SyntaxError):
            terminal.write("Uncaught exception: stopped where it was raised.\n")
            debugger.post_mortem(error.__traceback__)
        terminal.write("The program ended.\n")
    else:
        terminal.write("The program finished.\n")


def _call_from_program(debugger: Debugger) -> None:
    """Lets ``breakpoint()`` and ``pdb.set_trace()`` in the program stop in the session."""

    def set_trace(*_: Any, **__: Any) -> None:
        debugger.set_trace(sys._getframe(1))

    sys.breakpointhook = set_trace
    pdb.set_trace = set_trace


def _run_script(arguments: list[str], terminal: Terminal, debugger: Debugger) -> None:
    path = os.path.realpath(arguments[0])
    try:
        with open(path, "rb") as file:
            source = file.read()
    except OSError as error:
        terminal.write(f"{arguments[0]} cannot be read: {error.strerror}\n")
        return
    sys.argv[:] = arguments
    sys.path[0] = os.path.dirname(path)
    debugger.run(compile(source, path, "exec", dont_inherit=True), _main(__file__=path))


def _run_module(arguments: list[str], terminal: Terminal, debugger: Debugger) -> None:
    try:
        _, spec, code = runpy._get_module_details(arguments[0])  # type: ignore[attr-defined]
    except ImportError as error:
        terminal.write(f"there is no module {arguments[0]}: {error}\n")
        return
    sys.argv[:] = [code.co_filename, *arguments[1:]]
    names = {"__package__": spec.parent, "__loader__": spec.loader, "__spec__": spec}
    debugger.run(code, _main(__file__=code.co_filename, **names))


def _main(**names: Any) -> dict[str, Any]:
    module = types.ModuleType("__main__")
    sys.modules["__main__"] = module
    vars(module).update({"__builtins__": __builtins__, **names})
    return vars(module)


def _run_pytest(arguments: list[str], terminal: Terminal, debugger: Debugger) -> None:
    workspace = sys.path.pop(0)  # the tree may hold a pytest.py
    try:
        import pytest

        from coding_gym.tools.inside.fault import plain_flags
    except ImportError:
        terminal.write("there is no pytest here\n")
        return
    finally:
        sys.path.insert(0, workspace)

    class Plugin:
        """Stops where a test fails."""

        @pytest.hookimpl(tryfirst=True)
        def pytest_runtest_setup(self) -> None:
            _call_from_program(debugger)  # pytest has put its own in place

        def pytest_exception_interact(self, node: Any, call: Any, report: Any) -> None:
            if not hasattr(node, "runtest"):  # a file that cannot be collected
                terminal.write(f"{node.nodeid} cannot be collected:\n{report.longrepr}\n")
                return
            sys.settrace(None)
            terminal.begin_line()
            terminal.write(f"{node.nodeid} failed: {call.excinfo.exconly(tryshort=True)}\n")
            debugger.post_mortem(call.excinfo.tb)
            if debugger.breaks:  # other tests may reach one
                debugger.set_continue()
                sys.settrace(debugger.trace_dispatch)

    debugger.goes_on = True
    debugger.runcall(pytest.main, [*arguments, "-s", *plain_flags()], plugins=[Plugin()])


_PROGRAMS = {"pytest": _run_pytest, "script": _run_script, "module": _run_module}
