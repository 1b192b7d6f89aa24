"""What the conformance checks are written with, and how a backend is held to one."""

import os
import tempfile
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from coding_gym.host.interpreters import default_interpreter
from coding_gym.sandbox.protocol import Promise, Sandbox, SandboxBackend
from coding_gym.sandbox.spec import Interpreter, SandboxSpec


@dataclass(frozen=True, slots=True)
class SandboxCheck:
    """One claim about every backend; calling it raises AssertionError where it does not hold.

    Attributes:
        name: The claim.
        run: Tries it.
        promise: What it is part of; a backend whose probe names that as missing must fail here.
            None for what every backend must do.
        is_moot: Whether the machine itself, whatever the backend, may make it hold.
    """

    name: str
    run: Callable[[SandboxBackend], None]
    promise: Promise | None = None
    is_moot: Callable[[], bool] = lambda: False

    def __call__(self, backend: SandboxBackend) -> None:
        """Raises AssertionError unless the claim holds for the backend."""
        self.run(backend)


def hold(
    check: SandboxCheck, backend: SandboxBackend, *, missing: Collection[Promise] | None = None
) -> None:
    """Holds a backend to a check: it passes, or fails as the backend's own probe declared.

    Args:
        check: One of `sandbox_checks`.
        backend: What is tried.
        missing: What the probe named as missing; asked now when None, which may be slow.

    Raises:
        AssertionError: The claim does not hold, or does although its promise is said to be missing.
    """
    declared = backend.probe().missing if missing is None else missing
    if check.promise is None or check.promise not in declared:
        check(backend)
        return
    try:
        check(backend)
    except AssertionError:
        return
    if not check.is_moot():
        raise AssertionError(
            f"{backend.name!r} declares that it lacks {check.promise.value!r}, but here "
            f"{check.name} holds: keep the promise, or mend the check"
        )


def claim(
    promise: Promise | None = None, *, is_moot: Callable[[], bool] = lambda: False
) -> Callable[[Callable[[SandboxBackend], None]], SandboxCheck]:
    """Makes a function of a backend into a check that its name describes."""

    def decorate(function: Callable[[SandboxBackend], None]) -> SandboxCheck:
        return SandboxCheck(function.__name__, function, promise, is_moot)

    return decorate


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
    with tempfile.TemporaryDirectory(prefix=f"coding_gym-check-{os.getpid()}-") as temporary:
        folder = Path(temporary)
        for name, text in files.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text, encoding="utf-8")
        folder.chmod(0o755)
        give(backend, folder)
        yield folder


def give(backend: SandboxBackend, folder: Path) -> None:
    """Makes the backend's commands own a folder and all in it."""
    if os.geteuid() == 0:
        for path in (folder, *folder.rglob("*")):
            os.chown(path, *backend.owner(), follow_symlinks=False)


@contextmanager
def opened(
    backend: SandboxBackend,
    files: Mapping[str, str] | None = None,
    *,
    python: bool = False,
    **spec: Any,
) -> Iterator[Sandbox]:
    """Gives a sandbox with one layer that holds the files.

    Args:
        backend: Opens it.
        files: Text by path.
        python: Whether commands find ``python``.
        **spec: More fields of `SandboxSpec`.
    """
    if python:
        spec["python"] = interpreter()
    with (
        tree(backend, files or {}) as layer,
        backend.open(SandboxSpec(layers=(layer,), **spec)) as sandbox,
    ):
        yield sandbox


def interpreter() -> Interpreter:
    """Returns what ``python`` is in the checks that need one."""
    return default_interpreter()


def output(sandbox: Sandbox, command: str, **options: Any) -> str:
    """Returns the output of a command that must succeed."""
    result = sandbox.run(command, **options)
    expect(f"exit code of {command!r} ({result.output!r})", result.exit_code, 0)
    return result.output


def python_output(sandbox: Sandbox, script: str, **options: Any) -> str:
    """Returns the output of a Python script, which must end well."""
    sandbox.write_file("check_script.py", script.encode())
    return output(sandbox, "python check_script.py", **options)
