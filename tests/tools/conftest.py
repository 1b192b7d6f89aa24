"""A sandbox for the tools that a module tests."""

from collections.abc import Iterator

import pytest
from episodes import Scene

from coding_gym.sandbox import SandboxSpec, open_sandbox


@pytest.fixture
def scene(request: pytest.FixtureRequest) -> Iterator[Scene]:
    """A sandbox with the module's FILES, for its TOOLSET."""
    files: dict[str, str] = getattr(request.module, "FILES", {})
    with open_sandbox(getattr(request.module, "SPEC", SandboxSpec())) as sandbox:
        for path, content in files.items():
            sandbox.write_file(path, content.encode())
        yield Scene(sandbox, toolset=request.module.TOOLSET)
