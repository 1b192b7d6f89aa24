"""Shells and sandboxes for whoever asks for one."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from repositories import write_files
from shell_workspace import Files, Shell

from coding_gym.synthesis import Project
from coding_gym.synthesis.suite import TestSandbox
from coding_gym.workspace import TemplateStore

MakeShell = Callable[[Files], Shell]
OpenTests = Callable[[Files], TestSandbox]


@pytest.fixture
def shell(tmp_path: Path) -> MakeShell:
    """Makes a shell in a workspace of given files."""
    return lambda files: Shell(tmp_path, files)


@pytest.fixture(scope="module")
def open_tests(
    store: TemplateStore, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[OpenTests]:
    """Opens sandboxes of given files, in which their tests run; closed at the module's end."""
    opened = []

    def make(files: Files) -> TestSandbox:
        folder = write_files(tmp_path_factory.mktemp("program"), files)
        spec = store.get(Project(name="program", folder=folder).task()).spec
        opened.append(TestSandbox(spec, "auto", has_own_pytest=False))
        return opened[-1]

    yield make
    for tests in opened:
        tests.close()
