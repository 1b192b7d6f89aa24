"""Shells for whoever asks for one."""

from collections.abc import Callable
from pathlib import Path

import pytest
from shell_workspace import Files, Shell

MakeShell = Callable[[Files], Shell]


@pytest.fixture
def shell(tmp_path: Path) -> MakeShell:
    """Makes a shell in a workspace of given files."""
    return lambda files: Shell(tmp_path, files)
