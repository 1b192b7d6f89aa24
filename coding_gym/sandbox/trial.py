"""Everything that an episode needs of a sandbox, tried in one that is thrown away."""

import os
import socket
import tempfile
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from coding_gym.errors import CodingGymError, SandboxError
from coding_gym.sandbox.promises import Promise
from coding_gym.sandbox.protocol import Sandbox, SandboxBackend
from coding_gym.sandbox.spec import SandboxSpec

_TIMEOUT_S = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One thing that was tried.

    Attributes:
        name: What.
        ok: Whether it worked.
        detail: What came of it where it did not, one line.
        duration_s: How long it took.
    """

    name: str
    ok: bool
    detail: str = ""
    duration_s: float = 0.0


def try_out(backend: SandboxBackend, *, missing: Collection[Promise]) -> tuple[Step, ...]:
    """Returns how each step of a small episode went; the last is the first that failed.

    Args:
        backend: One that is available.
        missing: The promises that it says it does not keep, which are not tried.
    """
    steps: list[Step] = []
    with _layer(backend) as layer:
        opened: list[Sandbox] = []
        opening = _attempt("open a sandbox", lambda: opened.append(_open(backend, layer)))
        steps.append(opening)
        for name, action, promise in _STEPS if opening.ok else ():
            if promise in missing:
                continue
            steps.append(_attempt(name, lambda action=action: action(opened[0])))  # type: ignore[misc]
            if not steps[-1].ok:
                break
        if opened:
            steps.append(_attempt("close it", opened[0].close))
    return tuple(steps)


def _open(backend: SandboxBackend, layer: Path) -> Sandbox:
    return backend.open(SandboxSpec(layers=(layer,)))


def _attempt(name: str, action: Callable[[], object]) -> Step:
    began = time.monotonic()
    detail = ""
    try:
        action()
    except (CodingGymError, OSError) as error:
        detail = str(error).replace("\n", " ")
    return Step(name=name, ok=not detail, detail=detail, duration_s=time.monotonic() - began)


@contextmanager
def _layer(backend: SandboxBackend) -> Iterator[Path]:
    """Gives a folder with a few files, owned as layers must be."""
    with tempfile.TemporaryDirectory(prefix="coding_gym-trial-") as temporary:
        folder = Path(temporary)
        for name in ("removed", "moved", "kept"):
            (folder / name).mkdir()
            (folder / name / "file").write_text(f"{name}\n", encoding="utf-8")
        folder.chmod(0o755)
        if os.geteuid() == 0:
            for path in (folder, *folder.rglob("*")):
                os.chown(path, *backend.owner(), follow_symlinks=False)
        yield folder


def _expect(sandbox: Sandbox, command: str, output: str) -> None:
    result = sandbox.run(command, timeout_s=_TIMEOUT_S)
    if (result.exit_code, result.output) != (0, output):
        raise SandboxError(
            f"`{command}` ended with {result.exit_code} and printed {result.output.strip()!r}"
        )


def _run(sandbox: Sandbox) -> None:
    _expect(sandbox, "echo works; pwd", f"works\n{sandbox.workdir}\n")


def _remove_folder(sandbox: Sandbox) -> None:
    _expect(sandbox, "rm -rf removed && mkdir removed && ls -A removed", "")


def _move_folder(sandbox: Sandbox) -> None:
    _expect(sandbox, "mv moved elsewhere && cat elsewhere/file", "moved\n")


def _change_files(sandbox: Sandbox) -> None:
    _expect(sandbox, "echo new >> kept/file && chmod 700 kept/file && cat kept/file", "kept\nnew\n")
    sandbox.write_file("kept/other", b"data")
    if sandbox.read_file("kept/other") != b"data":
        raise SandboxError("a file that was written reads differently")


def _make_temporary(sandbox: Sandbox) -> None:
    _expect(sandbox, 'file=$(mktemp) && echo x > "$file" && cat "$file" ~/none 2>&- || :', "x\n")


def _snapshot(sandbox: Sandbox) -> None:
    snapshot = sandbox.snapshot()
    sandbox.run("rm -rf elsewhere; echo changed > kept/file; echo x > later")
    sandbox.restore(snapshot)
    _expect(
        sandbox, "cat elsewhere/file kept/file; ls", "moved\nkept\nnew\nelsewhere\nkept\nremoved\n"
    )


def _stop(sandbox: Sandbox) -> None:
    result = sandbox.run("sleep 60 & sleep 60", timeout_s=0.2)
    if not result.timed_out:
        raise SandboxError("a command went on after its time limit")


def _keep_network_closed(sandbox: Sandbox) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        result = sandbox.run(f"exec 3<>/dev/tcp/127.0.0.1/{port} && echo reached")
    if "reached" in result.output:
        raise SandboxError("a command reached a port of this machine")


def _hide_files(sandbox: Sandbox) -> None:
    with tempfile.NamedTemporaryFile(prefix="coding_gym-trial-") as file:
        file.write(b"of the host")
        file.flush()
        Path(file.name).chmod(0o644)
        result = sandbox.run(f"cat {file.name}")
    if "of the host" in result.output:
        raise SandboxError("a command read a file of this machine")


_STEPS: tuple[tuple[str, Callable[[Sandbox], None], Promise | None], ...] = (
    ("run a command", _run, None),
    ("remove a folder of the template", _remove_folder, None),
    ("move a folder of the template", _move_folder, None),
    ("change files of the template", _change_files, None),
    ("make a temporary file", _make_temporary, None),
    ("snapshot and restore", _snapshot, None),
    ("end a command at its time limit", _stop, None),
    ("keep the network closed", _keep_network_closed, Promise.NO_NETWORK),
    ("keep host files out of reach", _hide_files, Promise.HOST_FILES),
)
