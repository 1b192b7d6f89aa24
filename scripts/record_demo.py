"""Records `make demo` as the animated picture of the README.

    pip install termtosvg
    python scripts/record_demo.py

Pauses are cut to a second and a half; nothing else is changed.
"""

import codecs
import json
import os
import pty
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
PICTURE = ROOT / "docs" / "images" / "demo.svg"
COLUMNS, ROWS = 100, 30
MAX_PAUSE_S = 1.5
_PROMPT = "\x1b[1m$\x1b[0m "


def record(command: list[str]) -> list[tuple[float, str]]:
    """Runs a command in a terminal; returns its outputs, each with its time in seconds."""
    main, terminal = pty.openpty()
    size = {"COLUMNS": str(COLUMNS), "LINES": str(ROWS), "TERM": "xterm-256color"}
    child = subprocess.Popen(
        command, cwd=ROOT, env=os.environ | size, stdin=terminal, stdout=terminal, stderr=terminal
    )
    os.close(terminal)
    start_s, events = time.perf_counter(), []
    decoder = codecs.getincrementaldecoder("utf-8")()  # a character may come in two parts
    while True:
        try:
            chunk = os.read(main, 65536)
        except OSError:  # the command has ended
            break
        if not chunk:
            break
        events.append((time.perf_counter() - start_s, decoder.decode(chunk)))
    if child.wait():
        raise SystemExit(f"{command} ended with {child.returncode}")
    return events


def cast(events: list[tuple[float, str]]) -> str:
    """Returns the recording as an asciicast of version 2, with a typed command in front."""
    lines = [json.dumps({"version": 2, "width": COLUMNS, "height": ROWS})]
    now = 0.0
    for text in (_PROMPT, *"make demo"):
        lines.append(json.dumps([round(now, 3), "o", text]))
        now += 0.08
    lines.append(json.dumps([round(now, 3), "o", "\r\n"]))
    before = 0.0
    for at, text in events:
        now += min(at - before, MAX_PAUSE_S)
        before = at
        lines.append(json.dumps([round(now, 3), "o", text]))
    return "\n".join(lines) + "\n"


def main() -> None:
    """Records and draws."""
    events = record([str(ROOT / ".venv" / "bin" / "coding-gym"), "demo"])
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "demo.cast")
        path.write_text(cast(events), encoding="utf-8")
        termtosvg = Path(sys.executable).with_name("termtosvg")
        options = ["-D", "4000", "-m", "120", "-t", "gjm8"]
        subprocess.run([termtosvg, "render", str(path), str(PICTURE), *options], check=True)
    print(f"drawn: {PICTURE.relative_to(ROOT)}, {PICTURE.stat().st_size // 1024} KiB")


if __name__ == "__main__":
    main()
