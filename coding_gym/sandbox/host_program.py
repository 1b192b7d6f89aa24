"""Runs programs of the host, outside any sandbox, within bounds."""

import contextlib
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path


def run_program(
    arguments: Sequence[str], *, cwd: Path, env: Mapping[str, str], timeout_s: float | None
) -> "subprocess.CompletedProcess[bytes]":
    """Runs a program to its end and returns its exit status, standard output and error.

    The program and the rest of its session are always killed.

    Raises:
        TimeoutError: It took longer, and was killed.
    """
    process = subprocess.Popen(
        arguments,
        cwd=cwd,
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    try:
        output, errors = process.communicate(timeout=timeout_s)
    except subprocess.TimeoutExpired as error:
        raise TimeoutError(f"it took more than {timeout_s:g} s") from error
    finally:
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            # Not read to their ends: a process that left the session may hold them open.
            for pipe in (process.stdout, process.stderr):
                if pipe is not None:
                    pipe.close()
    return subprocess.CompletedProcess(arguments, process.returncode, output, errors)
