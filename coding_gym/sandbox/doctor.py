"""Reports which backends work on this machine, and why others do not, with the remedy."""

import os
import resource
import socket
import tempfile
import warnings
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

from coding_gym.errors import CodingGymError, SandboxError
from coding_gym.sandbox.backend_checks import RUN_AGAIN
from coding_gym.sandbox.cgroups import delegation
from coding_gym.sandbox.inside import proc_stat
from coding_gym.sandbox.process import NoIsolationWarning
from coding_gym.sandbox.protocol import Probe, Promise, Sandbox, SandboxBackend
from coding_gym.sandbox.select import AUTOMATIC, backend_names, get_backend
from coding_gym.sandbox.spec import SandboxSpec

_DEFAULT_EPISODES = 64
_TIMEOUT_S = 30.0
# Per sandbox and user: its first process, a shell, and the processes of a test run.
_PROCESSES = 8
# Per sandbox in the owner: its channel, and more while it is being opened.
_DESCRIPTORS = 4
_OWN_DESCRIPTORS = 64
_NAMESPACES = ("user", "mnt", "pid", "net", "ipc", "uts", "cgroup")


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One step of a small episode that was tried in a sandbox.

    Attributes:
        name: The step.
        ok: Whether it worked.
        detail: The failure, one line; "" where it worked.
    """

    name: str
    ok: bool
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    """The state of one backend.

    Attributes:
        name: Its name.
        probe: The result of its own probe.
        steps: Results of a small episode in it; none where it is not available.
    """

    name: str
    probe: Probe
    steps: tuple[Step, ...] = ()

    @property
    def works(self) -> bool:
        """Whether everything was tried and went well."""
        return self.probe.available and all(step.ok for step in self.steps)

    @property
    def failure(self) -> str:
        """The first failure and its reason; "" where there is none."""
        for step in self.steps:
            if not step.ok:
                return f"could not {step.name}: {step.detail}"
        return "" if self.probe.available else self.probe.detail

    @property
    def remedy(self) -> str:
        """The command or option that would make it work; "" where it works."""
        failed = [step.name for step in self.steps if not step.ok]
        return _step_remedy(failed[0]) if failed else self.probe.remedy


@dataclass(frozen=True, slots=True, kw_only=True)
class Shortage:
    """A limit that is too low.

    Attributes:
        limit: Its name.
        has: Its value.
        needs: The least sufficient value.
        remedy: The command that raises it.
    """

    limit: str
    has: int
    needs: int
    remedy: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """The state of this machine.

    Attributes:
        backends: One diagnosis per backend.
        automatic: The backend that ``"auto"`` means here; "" where none works.
        num_episodes: The number of open sandboxes that the limits were compared with.
        shortages: Limits that are too low for that number.
        cgroups: Whether sandboxes get control groups of their own; the remedy if not.
    """

    backends: tuple[Diagnosis, ...]
    automatic: str
    num_episodes: int
    shortages: tuple[Shortage, ...]
    cgroups: str

    def to_json(self) -> dict[str, Any]:
        """Returns the report as JSON-native values."""
        backends = {
            one.name: {
                "works": one.works,
                "detail": one.probe.detail,
                "failure": one.failure,
                "remedy": one.remedy,
                "missing": [promise.name for promise in one.probe.missing],
                "steps": [asdict(step) for step in one.steps],
            }
            for one in self.backends
        }
        return {
            "automatic": self.automatic,
            "backends": backends,
            "num_episodes": self.num_episodes,
            "shortages": [asdict(shortage) for shortage in self.shortages],
            "cgroups": self.cgroups,
        }


def examine(*, num_episodes: int = _DEFAULT_EPISODES) -> Report:
    """Tries every backend out in throw-away sandboxes, and compares the machine's limits.

    The limits should suffice for ``num_episodes`` sandboxes at a time.
    """
    backends = tuple(_examine(name) for name in backend_names())
    working = {one.name for one in backends if one.works}
    return Report(
        backends=backends,
        automatic=next((name for name in AUTOMATIC if name in working), ""),
        num_episodes=num_episodes,
        shortages=shortages(num_episodes),
        cgroups=delegation().detail,
    )


def _examine(name: str) -> Diagnosis:
    backend = get_backend(name)
    probe = backend.probe()
    with warnings.catch_warnings():
        # The report itself says that `process` isolates nothing.
        warnings.simplefilter("ignore", NoIsolationWarning)
        steps = try_out(backend, missing=probe.missing) if probe.available else ()
    return Diagnosis(name=name, probe=probe, steps=steps)


def try_out(backend: SandboxBackend, *, missing: Collection[Promise]) -> tuple[Step, ...]:
    """Returns the results of the steps of a small episode, up to the first failure.

    Promises that are missing are not tried.
    """
    steps: list[Step] = []

    def works(name: str, action: Callable[[], object]) -> bool:
        detail = ""
        try:
            action()
        except (CodingGymError, OSError) as error:
            detail = str(error).replace("\n", " ")
        steps.append(Step(name=name, ok=not detail, detail=detail))
        return not detail

    opened: list[Sandbox] = []
    with _layer(backend) as layer:
        spec = SandboxSpec(layers=(layer,))
        if works("open a sandbox", lambda: opened.append(backend.open(spec))):
            for name, action, promise in _STEPS:
                if promise not in missing and not works(name, partial(action, opened[0])):
                    break
            works("close it", opened[0].close)
    return tuple(steps)


@contextmanager
def _layer(backend: SandboxBackend) -> Iterator[Path]:
    """Yields a folder with a few files, owned as layers must be."""
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


def _expect(command: str, output: str, sandbox: Sandbox) -> None:
    result = sandbox.run(command, timeout_s=_TIMEOUT_S)
    if (result.exit_code, result.output) != (0, output):
        raise SandboxError(
            f"`{command}` ended with {result.exit_code} and printed {result.output.strip()!r}"
        )


def _snapshot(sandbox: Sandbox) -> None:
    sandbox.write_file("kept/other", b"data\n")
    snapshot = sandbox.snapshot()
    sandbox.run("rm -rf elsewhere; echo changed > kept/file; echo x > later")
    sandbox.restore(snapshot)
    if sandbox.read_file("kept/other") != b"data\n":
        raise SandboxError("a file that was written reads differently")
    seen = "moved\nkept\nnew\nelsewhere\nkept\nremoved\n"
    _expect("cat elsewhere/file kept/file; ls", seen, sandbox)


def _stop(sandbox: Sandbox) -> None:
    if not sandbox.run("sleep 60 & sleep 60", timeout_s=0.2).timed_out:
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


_REMOVE = "rm -rf removed && mkdir removed && ls -A removed"
_MOVE = "mv moved elsewhere && cat elsewhere/file"
_CHANGE = "echo new >> kept/file && chmod 700 kept/file && cat kept/file"
_USE_TMP = 'file=$(mktemp) && echo x > "$file" && cat "$file" ~/none 2>&- || :'
_STEPS: tuple[tuple[str, Callable[[Sandbox], None], Promise | None], ...] = (
    ("run a command", partial(_expect, "echo works", "works\n"), None),
    ("remove a folder of the template", partial(_expect, _REMOVE, ""), None),
    ("move a folder of the template", partial(_expect, _MOVE, "moved\n"), None),
    ("change files of the template", partial(_expect, _CHANGE, "kept\nnew\n"), None),
    ("make a temporary file", partial(_expect, _USE_TMP, "x\n"), None),
    ("snapshot and restore", _snapshot, None),
    ("end a command at its time limit", _stop, None),
    ("keep the network closed", _keep_network_closed, Promise.NO_NETWORK),
    ("keep host files out of reach", _hide_files, Promise.HOST_FILES),
)


def _step_remedy(name: str) -> str:
    if "folder" in name:
        return f"use Linux 6.6 or later (this is {os.uname().release}), or another backend"
    if "network" in name or "host files" in name:
        return "do not use this backend for policies that you do not trust, and report this"
    return RUN_AGAIN


def shortages(num_episodes: int) -> tuple[Shortage, ...]:
    """Returns the limits of this machine that are too low for a number of open sandboxes."""
    files = _OWN_DESCRIPTORS + _DESCRIPTORS * num_episodes
    found = [_of_process("open files", resource.RLIMIT_NOFILE, files, "n", "nofile")]
    if os.geteuid() != 0:  # the kernel does not limit root
        processes = _num_threads() + _PROCESSES * num_episodes
        found.append(_of_process("processes", resource.RLIMIT_NPROC, processes, "u", "nproc"))
    found += [_of_namespaces(f"user.max_{kind}_namespaces", num_episodes) for kind in _NAMESPACES]
    return tuple(shortage for shortage in found if shortage is not None)


def _of_process(limit: str, kind: int, needs: int, option: str, item: str) -> Shortage | None:
    soft, hard = resource.getrlimit(kind)
    if soft == resource.RLIM_INFINITY or soft >= needs:
        return None
    remedy = f"run `ulimit -{option} {needs}` in the shell that starts the trainer"
    if hard != resource.RLIM_INFINITY and hard < needs:
        remedy = f"put `* - {item} {needs}` into /etc/security/limits.conf, log in again"
    return Shortage(limit=limit, has=soft, needs=needs, remedy=remedy)


def _of_namespaces(name: str, num_episodes: int) -> Shortage | None:
    needs = num_episodes + 2  # one set per sandbox, and one for the process that opens them
    try:
        has = int((Path("/proc/sys") / name.replace(".", "/")).read_text(encoding="ascii"))
    except (OSError, ValueError):
        return None
    remedy = f"run `sudo sysctl -w {name}={max(needs, 65536)}`"
    return None if has >= needs else Shortage(limit=name, has=has, needs=needs, remedy=remedy)


def _num_threads() -> int:
    """Returns the number of this user's threads, which count as processes."""
    count = 0
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            is_ours = entry.stat().st_uid == os.getuid()
        except OSError:  # it ended
            continue
        fields = proc_stat.fields(entry.name) if is_ours else []
        count += int(fields[proc_stat.NUM_THREADS]) if fields else 0
    return count
