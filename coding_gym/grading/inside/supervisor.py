"""The parent of a test process: reads the report from a pipe and prints the report in one line.

The line begins with a secret of the host. Results are never read from the output of the tests; only
the end of the output is kept, for error messages. If pytest is already imported, the test process
is a fork of this process, made before the secret is read; otherwise it is a new interpreter.
"""

import contextlib
import json
import os
import select
import signal
import sys
import time

TYPE_CHECKING = False  # `typing` takes time to import
if TYPE_CHECKING:
    from typing import Any

_PR_SET_DUMPABLE = 4
_PR_SET_CHILD_SUBREAPER = 36
_MAX_REPORT_BYTES = 64 << 20  # about 150,000 tests
_MAX_TAIL_BYTES = 4096
_POLL_S = 0.05
_MAX_LAST_READS = 64
_MAX_DESCRIPTORS = 64
_SIZE_BYTES = 10  # length of the decimal number before the first part of the input
_HAS_ENDED = os.WEXITED | os.WNOHANG | os.WNOWAIT


def _prctl(option: int, value: int) -> None:
    try:
        import ctypes

        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)
    except (ImportError, OSError, AttributeError):
        return  # without ctypes or prctl the option has no effect


def _hide() -> None:
    """Hides /proc/<pid> (memory, descriptors, text) from the tests, which have the same uid."""
    # Without prctl, only the permissions of /proc protect the secret.
    _prctl(_PR_SET_DUMPABLE, 0)


def _receive(size: int) -> bytes:
    """Reads ``size`` bytes from standard input, without a buffer that a fork would inherit."""
    data = b""
    while len(data) < size:
        chunk = os.read(0, size - len(data))
        if not chunk:
            raise EOFError("standard input ended")
        data += chunk
    return data


def _print_line(line: str) -> None:
    sys.stdout.write(f"\n{line}\n")
    sys.stdout.flush()


def _spawn(start: "dict[str, Any]", report: int, output: int) -> "tuple[int, int]":
    """Starts the test process, which imports the test framework and then waits for its settings.

    Returns:
        The id of the process, and the descriptor that writes to its standard input.
    """
    reader, writer = os.pipe()
    pid = os.fork()
    if pid:
        os.close(reader)
        settings = json.dumps({"modules": start["modules"], "descriptor": report}).encode()
        bootstrap = start["bootstrap"].encode()
        _write(writer, b"%d\n" % len(bootstrap) + bootstrap + settings + b"\n")
        return pid, writer
    os.setsid()
    for descriptor, stream in ((reader, 0), (output, 1), (output, 2)):
        os.dup2(descriptor, stream)
    os.set_inheritable(report, True)
    os.environ.update(start["environment"])
    if "pytest" not in sys.modules:
        command = [sys.executable, "-c", start["loader"]]
        os.execv(sys.executable, command)  # noqa: S606 — no shell is needed
    os.closerange(3, report)
    os.closerange(report + 1, _MAX_DESCRIPTORS)
    _prctl(_PR_SET_DUMPABLE, 1)
    loader = compile(start["loader"], "<string>", "exec")
    exec(loader, vars(_new_main()))  # noqa: S102 — the host sends this text
    sys.exit()  # the caller would continue as the supervisor


def _new_main() -> "Any":
    """Gives this fork the state of a new interpreter with ``site``; returns its ``__main__``."""
    sys.dont_write_bytecode = bool(os.environ.get("PYTHONDONTWRITEBYTECODE"))
    time.tzset()
    sys.path[:0] = [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]
    import site

    site.main()
    sys.modules["__main__"] = main = type(sys)("__main__")
    vars(main).update(__annotations__={}, __builtins__=sys.modules["builtins"])
    return main


def _write(descriptor: int, data: bytes) -> None:
    with contextlib.suppress(BrokenPipeError):  # the test process ended; its output has the reason
        while data:
            data = data[os.write(descriptor, data) :]


class _Report:
    """The records up to the record "end", and whether the pipe had other text ("strays")."""

    def __init__(self, nonce: str) -> None:
        self._prefix = nonce.encode() + b" "
        self._rest = b""
        self._num_bytes = 0
        self.records: list[list[Any]] = []
        self.has_strays = False
        self.ended = False

    def feed(self, data: bytes) -> None:
        """Adds the next bytes of the pipe; lines that are not records with the nonce are strays."""
        self._num_bytes += len(data)
        lines = (self._rest + data).split(b"\n")
        self._rest = lines.pop()
        for line in lines:
            record = self._read(line)
            if record is None:
                self.has_strays = True
            elif not self.ended:
                self.records.append(record)
                self.ended = record[0] == "end"

    def is_flooded(self) -> bool:
        return self._num_bytes > _MAX_REPORT_BYTES

    def finish(self) -> None:
        """Checks the last line.

        An incomplete last line is accepted if it begins like a record: the test process can be
        killed while it writes.
        """
        if self._rest and not self._rest.startswith(self._prefix[: len(self._rest)]):
            self.has_strays = True

    def _read(self, line: bytes) -> "list[Any] | None":
        if not line.startswith(self._prefix):
            return None
        try:
            record = json.loads(line[len(self._prefix) :].decode())
        except ValueError:
            return None
        return record if isinstance(record, list) and record else None


def _watch(
    child: int, report: _Report, pipe: int, output: int, deadline: float
) -> "tuple[bool, bytes]":
    """Reads both pipes until the run ends; returns whether it timed out, and the output's end."""
    tail = b""
    open_pipes = [pipe, output]
    timed_out = False
    has_exited = False
    while open_pipes and not report.ended and not report.is_flooded():
        remaining_s = deadline - time.monotonic()
        if remaining_s <= 0:
            timed_out = True
            break
        # A background process of a test can keep the pipes open, so the child is polled, too.
        timeout_s = 0 if has_exited else min(remaining_s, _POLL_S)
        ready = select.select(open_pipes, [], [], timeout_s)[0]
        if has_exited and not ready:
            break
        for descriptor in ready:
            data = os.read(descriptor, 65536)
            if not data:
                open_pipes.remove(descriptor)
            elif descriptor == pipe:
                report.feed(data)
            else:
                tail = (tail + data)[-_MAX_TAIL_BYTES:]
        has_exited = has_exited or os.waitid(os.P_PID, child, _HAS_ENDED) is not None
    for _ in range(_MAX_LAST_READS):  # the report can end before all output is read
        if output not in open_pipes or not select.select([output], [], [], 0)[0]:
            break
        tail = (tail + os.read(output, 65536))[-_MAX_TAIL_BYTES:]
    return timed_out, tail


def _kill(group: int) -> float:
    """Kills the test process and its process group; returns the CPU seconds that they used."""
    # The supervisor adopts orphans only now, to count their CPU time. While tests run, process 1
    # adopts orphans, as outside a sandbox.
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
    start = json.loads(_receive(int(_receive(_SIZE_BYTES))).decode())
    child, writer = _spawn(start, report_end, output_end)
    os.close(report_end)
    os.close(output_end)
    # The secrets are read only after the fork, so the test process never has the secrets.
    config = json.loads(sys.stdin.buffer.read().decode())
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)  # the input is a file, which could be read again
    frame = config["frame"]
    _print_line(f"{frame} began")
    deadline = time.monotonic() + config["timeout_s"]
    _write(writer, json.dumps(config["child"]).encode())
    os.close(writer)
    report = _Report(config["child"]["nonce"])
    timed_out, tail = _watch(child, report, pipe, output, deadline)
    report.finish()
    cpu_s = _kill(child)
    verdict = {
        "records": [] if report.is_flooded() else report.records,
        "is_forged": report.has_strays or report.is_flooded(),
        "timed_out": timed_out,
        "cpu_s": cpu_s,
        "tail": tail.decode("utf-8", "replace"),
    }
    _print_line(f"{frame} {json.dumps(verdict)}")
    os._exit(0)  # a normal exit of the interpreter can take as long as a small test suite


if __name__ == "__main__":
    _main()
