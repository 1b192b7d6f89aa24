"""Starts the program that a debugger session is about: tests, a script or a module."""

# ruff: noqa: TID252, PTH109, PTH120, PTH123 - the program under test sees what is imported

from __future__ import annotations

import os
import pdb
import runpy
import sys
import traceback
import types
from typing import Any


def run_program(entry: dict[str, Any], session: Any, debugger: Any) -> None:
    """Runs a program under a debugger until it ends.

    Args:
        entry: ``kind``: ``pytest``, ``script`` or ``module``; and ``arguments``.
        session: Where it is said how the program ended.
        debugger: Where the program stops.
    """
    sys.path.insert(0, os.getcwd())
    _call_from_program(debugger)
    try:
        _KINDS[entry["kind"]](entry["arguments"], session, debugger)
    except SystemExit as left:
        session.write(f"The program exited with status {left.code}.\n")
    except BaseException as error:  # noqa: BLE001 - whatever the program raised is looked at
        sys.settrace(None)
        entries = traceback.extract_tb(error.__traceback__)
        own = [e for e in entries if not e.filename.startswith("<") and e.filename != _BDB]
        session.write("Traceback (most recent call last):\n")
        session.write("".join(traceback.format_list(own)))
        session.write("".join(traceback.format_exception_only(type(error), error)))
        if error.__traceback__ is not None and own and not isinstance(error, SyntaxError):
            session.write("Uncaught exception: stopped where it was raised.\n")
            debugger.post_mortem(error.__traceback__)
        session.write("The program ended.\n")
    else:
        session.write("The program finished.\n")


def _call_from_program(debugger: Any) -> None:
    """Lets ``breakpoint()`` and ``pdb.set_trace()`` in the program stop in the session."""

    def set_trace(*_: Any, **__: Any) -> None:
        debugger.set_trace(sys._getframe(1))

    sys.breakpointhook = set_trace
    pdb.set_trace = set_trace


def _run_script(arguments: list[str], session: Any, debugger: Any) -> None:
    path = os.path.realpath(arguments[0])
    try:
        with open(path, "rb") as file:
            source = file.read()
    except OSError as error:
        session.write(f"{arguments[0]} cannot be read: {error.strerror}\n")
        return
    sys.argv[:] = arguments
    sys.path[0] = os.path.dirname(path)
    debugger.run(compile(source, path, "exec", dont_inherit=True), _main(__file__=path))


def _run_module(arguments: list[str], session: Any, debugger: Any) -> None:
    try:
        _, spec, code = runpy._get_module_details(arguments[0])  # type: ignore[attr-defined]
    except ImportError as error:
        session.write(f"there is no module {arguments[0]}: {error}\n")
        return
    sys.argv[:] = [code.co_filename, *arguments[1:]]
    names = _main(
        __file__=code.co_filename,
        __package__=spec.parent,
        __loader__=spec.loader,
        __spec__=spec,
    )
    debugger.run(code, names)


def _main(**names: Any) -> dict[str, Any]:
    module = types.ModuleType("__main__")
    sys.modules["__main__"] = module
    vars(module).update({"__builtins__": __builtins__, **names})
    return vars(module)


def _run_pytest(arguments: list[str], session: Any, debugger: Any) -> None:
    workspace = sys.path.pop(0)  # the tree may hold a pytest.py
    try:
        import pytest

        from .traced_tests import plain_flags
    except ImportError:
        session.write("there is no pytest here\n")
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
                session.write(f"{node.nodeid} cannot be collected:\n{report.longrepr}\n")
                return
            sys.settrace(None)
            session.begin_line()
            session.write(f"{node.nodeid} failed: {call.excinfo.exconly(tryshort=True)}\n")
            debugger.post_mortem(call.excinfo.tb)
            if debugger.breaks:  # other tests may reach one
                debugger.set_continue()
                sys.settrace(debugger.trace_dispatch)

    debugger.goes_on = True
    debugger.runcall(pytest.main, [*arguments, "-s", *plain_flags()], plugins=[Plugin()])


_KINDS = {"pytest": _run_pytest, "script": _run_script, "module": _run_module}
_BDB = sys.modules["bdb"].__file__
