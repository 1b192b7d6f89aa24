"""What the conformance checks are written with."""

import os
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from coding_gym.sandbox.protocol import Sandbox, SandboxBackend
from coding_gym.sandbox.spec import SandboxSpec

SandboxCheck = Callable[[SandboxBackend], None]


def claim(function: SandboxCheck) -> SandboxCheck:
    """Marks a function as a check."""
    function.is_claim = True  # type: ignore[attr-defined]
    return function


def expect(what: str, got: object, wanted: object) -> None:
    """Raises AssertionError, which says what differs, unless the values are equal."""
    if got != wanted:
        raise AssertionError(f"{what}: wanted {wanted!r}, got {got!r}")


def expect_error(what: str, kind: type[BaseException], action: Callable[[], object]) -> int:
    """Returns the errno of the error that ``action`` must raise, 0 where it has none."""
    try:
        result = action()
    except kind as error:
        return getattr(error, "errno", 0) or 0
    raise AssertionError(f"{what}: wanted {kind.__name__}, got {result!r}")


@contextmanager
def tree(backend: SandboxBackend, files: Mapping[str, str]) -> Iterator[Path]:
    """Gives a temporary folder with files, owned as layers must be."""
    with tempfile.TemporaryDirectory(prefix="coding_gym-check-") as temporary:
        folder = Path(temporary)
        for name, text in files.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text, encoding="utf-8")
        folder.chmod(0o755)
        for path in (folder, *folder.rglob("*")):
            if os.geteuid() == 0:
                os.chown(path, *backend.owner(), follow_symlinks=False)
        yield folder


@contextmanager
def opened(backend: SandboxBackend, files: Mapping[str, str] | None = None) -> Iterator[Sandbox]:
    """Gives a sandbox with one layer that holds the files."""
    with tree(backend, files or {}) as layer, backend.open(SandboxSpec(layers=(layer,))) as sandbox:
        yield sandbox


def output(sandbox: Sandbox, command: str) -> str:
    """Returns the output of a command that must succeed."""
    result = sandbox.run(command)
    expect(f"exit code of {command!r} ({result.output!r})", result.exit_code, 0)
    return result.output
