"""Sandboxes in which the tests of small programs run."""

from collections.abc import Callable, Iterator, Mapping

import pytest
from sandbox_fixtures import write_files

from coding_gym.synthesis import Project
from coding_gym.synthesis.suite import SuiteSandbox
from coding_gym.workspace import TemplateStore

Files = Mapping[str, str]
OpenTests = Callable[[Files], SuiteSandbox]


@pytest.fixture(scope="module")
def open_tests(
    store: TemplateStore, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[OpenTests]:
    """Opens sandboxes of given files, in which their tests run; closed at the module's end."""
    opened = []

    def make(files: Files) -> SuiteSandbox:
        folder = write_files(tmp_path_factory.mktemp("program"), files)
        spec = store.get(Project(name="program", folder=folder).task()).spec
        opened.append(SuiteSandbox(spec, "auto", has_own_pytest=False))
        return opened[-1]

    yield make
    for tests in opened:
        tests.close()
