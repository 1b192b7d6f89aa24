"""The ``coding-gym`` command, run inside the process of the tests."""

import contextlib
import io
import sys
from pathlib import Path
from unittest import mock

from coding_gym.cli.app import main


def run(*arguments: str | Path, code: int = 0) -> str:
    """Returns what the command prints, standard output first; it must exit with ``code``."""
    out, err = io.StringIO(), io.StringIO()
    exit_code: object = 0
    with (
        mock.patch.object(sys, "argv", ["coding-gym", *map(str, arguments)]),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        try:
            main()
        except SystemExit as ended:
            exit_code = ended.code or 0
    said = out.getvalue() + err.getvalue()
    assert exit_code == code, said
    return said
