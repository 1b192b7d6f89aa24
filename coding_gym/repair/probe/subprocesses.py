"""Lines that run in processes which tests start, such as a program's own command line."""

# ruff: noqa: TID252 - in the sandbox this package has another name

from __future__ import annotations

import atexit
import json
import os
import shutil

from coding_gym.tools.inside.tracing import LineTracer

from .place import FOLDER, is_program

_SITE = FOLDER / "site"
_LINES = FOLDER / "lines"


def follow() -> None:
    """Has every Python process started from now on write down its lines when it ends."""
    for folder in (_SITE, _LINES):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
    code = f"from {__name__} import trace_this_process\ntrace_this_process()\n"
    (_SITE / "sitecustomize.py").write_text(code, encoding="utf-8")
    paths = [str(_SITE), str(FOLDER), os.environ.get("PYTHONPATH", "")]
    os.environ["PYTHONPATH"] = os.pathsep.join(path for path in paths if path)


def trace_this_process() -> None:
    """Traces until the process ends, then writes its lines to a file of its own."""
    lines: dict[tuple[str, int], None] = {}
    tracer = LineTracer(is_program)
    tracer.collect_into(lines)

    def write() -> None:
        tracer.stop()
        path = _LINES / f"{os.getpid()}.json"
        path.with_suffix(".part").write_text(json.dumps(sorted(lines)), encoding="utf-8")
        path.with_suffix(".part").rename(path)

    atexit.register(write)


def gather(lines: dict[tuple[str, int], None]) -> None:
    """Moves what ended processes wrote down into ``lines``."""
    if not _LINES.is_dir():
        return
    for path in sorted(_LINES.glob("*.json")):
        for name, line in json.loads(path.read_text(encoding="utf-8")):
            lines.setdefault((name, line))
        path.unlink()
