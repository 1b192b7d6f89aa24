"""Runs programs of the host, outside any sandbox, within a time limit."""

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

    Raises:
        TimeoutError: The time limit passed; the process group was killed.
    """
    with subprocess.Popen(
        arguments,
        cwd=cwd,
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    ) as process:
        try:
            output, errors = process.communicate(timeout=timeout_s)
        except BaseException as error:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            if isinstance(error, subprocess.TimeoutExpired):
                raise TimeoutError(f"it ran longer than its limit of {timeout_s:g} s") from error
            raise
    return subprocess.CompletedProcess(arguments, process.returncode, output, errors)
