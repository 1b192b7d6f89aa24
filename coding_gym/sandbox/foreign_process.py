"""Waiting for a process that another library started, within bounds."""

import contextlib
import os
import signal
import subprocess


def read_to_end(
    process: "subprocess.Popen[bytes]", *, timeout_s: float | None
) -> tuple[bytes, bytes]:
    """Returns what a process wrote to its standard output and error until it ended.

    Whatever happens, it and what is left of its session are gone afterwards.

    Args:
        process: It leads a session of its own, and both are pipes.
        timeout_s: How long it may take; None for as long as it wants.

    Raises:
        TimeoutError: It took longer, and was killed.
    """
    try:
        return process.communicate(timeout=timeout_s)
    except subprocess.TimeoutExpired as error:
        raise TimeoutError(f"it took more than {timeout_s:g} s") from error
    finally:
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            # Not read to their ends: who left the session may hold them open for ever.
            for pipe in (process.stdout, process.stderr):
                if pipe is not None:
                    pipe.close()
