"""Namespace sandboxes that lack one protection: with them a test proves that its attack is real.

Lines are appended to modules in a copy of the sandbox server, and a server starts from the copy.
"""

import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from coding_gym.sandbox.channel import Channel
from coding_gym.sandbox.inside import __path__ as server_folders
from coding_gym.sandbox.namespace import NamespaceBackend
from coding_gym.sandbox.protocol import Snapshot
from coding_gym.sandbox.spec import SandboxSpec
from coding_gym.sandbox.zygotes import Zygote

_ALLOW_ALL = "def program(machine): return struct.pack('HBBI', 6, 0, 0, 0x7FFF0000)"
# Protection: modules of the server, and the lines at their ends that take the protection away.
ABLATIONS: dict[str, dict[str, str]] = {
    "system-call filter": {"seccomp": _ALLOW_ALL},
    "hidden init": {
        "plan": """
_mount, _prctl = Plan.mount, Plan.prctl
def _visible(self, kind, target, flags, options='', **others):
    _mount(self, kind, target, flags, options.replace('hidepid=invisible', ''), **others)
def _dumpable(self, option, *arguments):
    if (option, arguments) != (4, (0,)):
        _prctl(self, option, *arguments)
Plan.mount, Plan.prctl = _visible, _dumpable
_set_capabilities = Plan.set_capabilities
Plan.set_capabilities = lambda self, *_: _set_capabilities(self, 0, 0)""",
        "seccomp": _ALLOW_ALL,
    },
    "read-only devices": {
        "syscalls": """
_restrict = restrict
def restrict(path, flags, *, recursive=True):
    _restrict(path, flags & ~READ_ONLY if '/dev' in path else flags, recursive=recursive)"""
    },
    "count limits": {"mounts": "_MAX_COUNTS = {}\n_MAX_TERMINALS = 500"},
    "abstract socket scope": {"lockdown": "def _leave_abstract_sockets(calls): pass"},
    "refusal of links to open files": {"syscalls": "_RESOLVE_NO_MAGIC_LINKS = 0"},
}


@contextmanager
def without(*protections: str) -> Iterator[NamespaceBackend]:
    """Gives a backend with a server of its own, whose sandboxes lack some `ABLATIONS`."""
    changes: dict[str, str] = {}
    for protection in protections:
        for module, lines in ABLATIONS[protection].items():
            changes[module] = f"{changes.get(module, '')}\n{lines}\n"
    with _changed(changes) as backend:
        yield backend


@contextmanager
def evaluating(expression: str) -> Iterator[NamespaceBackend]:
    """Gives a backend of which `read_file` returns an expression's ``repr`` in the first process.

    Args:
        expression: Of Python; ``sys`` is there.
    """
    lines = f"import sys\ndef read(*_): return repr({expression}).encode()\n"
    with _changed({"files": lines}) as backend:
        yield backend


@contextmanager
def _changed(changes: Mapping[str, str]) -> Iterator[NamespaceBackend]:
    """Gives a backend whose server has more lines at the ends of its modules."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "inside"
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(next(iter(server_folders)), folder, ignore=ignored)
        for module, lines in changes.items():
            with (folder / f"{module}.py").open("a", encoding="utf-8") as file:
                file.write(f"\n{lines}\n")
        server = Zygote("namespace", *NamespaceBackend().owner(), folder / "__main__.py")
        try:
            yield _OwnServerBackend(server)
        finally:
            server.stop()


class _OwnServerBackend(NamespaceBackend):
    def __init__(self, server: Zygote) -> None:
        super().__init__()
        self._server = server

    def _start_in(
        self,
        handle: Zygote,  # noqa: ARG002 - the one that all other backends of this process share
        spec: SandboxSpec,
        snapshot: Snapshot | None,
    ) -> Channel:
        return super()._start_in(self._server, spec, snapshot)
