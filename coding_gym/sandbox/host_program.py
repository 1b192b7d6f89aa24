"""Runs programs of the host, outside any sandbox, within a time limit."""

import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path


def run_program(
    arguments: Sequence[str], *, cwd: Path, env: Mapping[str, str], timeout_s: float | None
) -> "subprocess.CompletedProcess[bytes]":
    """Runs a program to its end and returns its exit status, standard output and error.

    Raises:
        TimeoutError: It took longer, and was killed.
    """
    try:
        return subprocess.run(
            arguments,
            cwd=cwd,
            env=env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=timeout_s,
            check=False,
            start_new_session=True,
        )
    except subprocess.TimeoutExpired as error:
        raise TimeoutError(f"it took more than {timeout_s:g} s") from error
