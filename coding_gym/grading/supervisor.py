"""The parent of a test process. A text that runs inside the sandbox; never imported here.

It runs under the Python of the task's environment, so it keeps to the standard library of Python
3.6. It starts the test process, collects what that reports over a pipe, and prints it as one line
that begins with a secret of the host's. What the tests print is not a result, and only its end is
kept, for people. It acts only under the name ``__inside__``, which its loader gives it.
"""

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import time

TYPE_CHECKING = False  # `typing` takes time to import
if TYPE_CHECKING:
    from typing import Any

_PR_SET_DUMPABLE = 4
_PR_SET_CHILD_SUBREAPER = 36
_MAX_REPORT_BYTES = 64 << 20  # some 150,000 tests
_MAX_TAIL_BYTES = 4096
_TICK_S = 0.05


def _prctl(option: int, value: int) -> None:
    try:
        import ctypes

        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)
    except (ImportError, OSError, AttributeError):
        return  # no ctypes, or no prctl: what callers say of each option then does not hold


def _hide() -> None:
    """Shuts /proc/<pid> to the tests, which run under the same uid: memory, descriptors, text."""
    # Without it the secret is only as safe as /proc makes it.
    _prctl(_PR_SET_DUMPABLE, 0)


def _say(line: str) -> None:
    sys.stdout.write(f"\n{line}\n")
    sys.stdout.flush()


def _spawn(start: "dict[str, Any]", report: int, output: int) -> "subprocess.Popen[Any]":
    """Starts the test process, which imports its framework and then waits for the rest."""
    child = subprocess.Popen(
        [sys.executable, "-c", start["loader"]],
        stdin=subprocess.PIPE,
        stdout=output,
        stderr=output,
        pass_fds=(report,),
        env=dict(os.environ, **start["environment"]),
        start_new_session=True,
    )
    bootstrap = start["bootstrap"].encode()
    first = json.dumps({"program": start["program"], "descriptor": report}).encode()
    _tell(child, b"%d\n" % len(bootstrap) + bootstrap + first + b"\n")
    return child


def _tell(child: "subprocess.Popen[Any]", data: bytes, *, is_all: bool = False) -> None:
    assert child.stdin is not None  # noqa: S101 — for the type checker
    with contextlib.suppress(BrokenPipeError):  # it ended; its output says why
        child.stdin.write(data)
        child.stdin.flush()
        if is_all:
            child.stdin.close()


class _Report:
    """What came over the pipe, in bounded space."""

    def __init__(self, nonce: str) -> None:
        self._prefix = nonce.encode() + b" "
        self._rest = b""
        self._num_bytes = 0
        self.records: list[list[Any]] = []
        self.num_strays = 0
        self.ended = False

    def feed(self, data: bytes) -> None:
        """Takes the next bytes; lines that do not begin with the nonce are counted as strays."""
        self._num_bytes += len(data)
        lines = (self._rest + data).split(b"\n")
        self._rest = lines.pop()
        for line in lines:
            record = self._read(line)
            if record is None:
                self.num_strays += 1
            elif not self.ended:
                self.records.append(record)
                self.ended = record[0] == "end"

    def is_flooded(self) -> bool:
        return self._num_bytes > _MAX_REPORT_BYTES

    def finish(self) -> None:
        """Judges what is left: half a line of ours is a death, anything else is a stray."""
        if self._rest and not self._rest.startswith(self._prefix[: len(self._rest)]):
            self.num_strays += 1

    def _read(self, line: bytes) -> "list[Any] | None":
        if not line.startswith(self._prefix):
            return None
        try:
            record = json.loads(line[len(self._prefix) :].decode())
        except ValueError:
            return None
        return record if isinstance(record, list) and record else None


def _watch(
    child: "subprocess.Popen[Any]", report: _Report, pipe: int, output: int, deadline: float
) -> "tuple[bool, bytes]":
    """Reads both pipes until the run ends; returns whether it ran out of time, and its output."""
    tail = b""
    open_pipes = [pipe, output]
    timed_out = False
    gone = False
    while open_pipes and not report.ended and not report.is_flooded():
        left = deadline - time.monotonic()
        if left <= 0:
            timed_out = True
            break
        # A process that outlived the tests may hold the pipes open: look at the child as well.
        ready = select.select(open_pipes, [], [], 0 if gone else min(left, _TICK_S))[0]
        if gone and not ready:
            break
        for one in ready:
            data = os.read(one, 65536)
            if not data:
                open_pipes.remove(one)
            elif one == pipe:
                report.feed(data)
            else:
                tail = (tail + data)[-_MAX_TAIL_BYTES:]
        gone = gone or child.poll() is not None
    return timed_out, tail


def _kill(group: int) -> float:
    """Ends the test process and what it started, and returns the CPU seconds that they used."""
    # Whoever is orphaned now becomes our child, so that its time is counted. Not before: what tests
    # orphan while they run belongs to process 1, as everywhere.
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(group, signal.SIGKILL)
    with contextlib.suppress(ChildProcessError):
        while True:
            os.waitpid(-group, 0)
    times = os.times()
    return times.children_user + times.children_system


def _main() -> None:
    _hide()
    pipe, report_end = os.pipe()
    output, output_end = os.pipe()
    child = _spawn(json.loads(sys.stdin.buffer.readline().decode()), report_end, output_end)
    os.close(report_end)
    os.close(output_end)
    # All that is secret comes now: in a run that was prepared, when the tree is as it will be.
    config = json.loads(sys.stdin.buffer.read().decode())
    frame = config["frame"]
    _say(f"{frame} began")
    start = time.monotonic()
    _tell(child, json.dumps(config["child"]).encode(), is_all=True)
    report = _Report(config["child"]["nonce"])
    timed_out, tail = _watch(child, report, pipe, output, start + config["timeout_s"])
    wall_s = time.monotonic() - start
    report.finish()
    cpu_s = _kill(child.pid)
    verdict = {
        "records": [] if report.is_flooded() else report.records,
        "num_strays": report.num_strays,
        "flooded": report.is_flooded(),
        "timed_out": timed_out,
        "cpu_s": cpu_s,
        "wall_s": wall_s,
        "tail": tail.decode("utf-8", "replace"),
    }
    _say(f"{frame} {json.dumps(verdict)}")


if __name__ == "__inside__":
    _main()
