"""Sandboxes with one wall taken down, to show that the attacks on it are real.

A copy of the zygote is changed by lines put at the end of one of its modules, and a zygote of its
own is started from it. Other walls a spec can do without.
"""

import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from sentinels import Host

from coding_gym.sandbox import Mount, SandboxLimits, SandboxSpec, namespace, zygote_process
from coding_gym.sandbox.namespace import NamespaceBackend
from coding_gym.sandbox.zygote import __path__ as zygote_folders

_ROOMY = SandboxLimits(num_processes=1000, num_open_files=4096)
_ALLOW_ALL = 'def program(machine): return struct.pack("HBBI", 6, 0, 0, 0x7FFF0000)'
# Name of the wall: modules of the zygote and what is put at their ends.
WALLS: dict[str, dict[str, str]] = {
    "no filter": {
        "seccomp": _ALLOW_ALL,
    },
    "visible init": {
        "plan": (
            "_mount, _prctl = Plan.mount, Plan.prctl\n"
            "def _without_hiding(self, kind, target, flags, options=''):\n"
            "    _mount(self, kind, target, flags, options.replace('hidepid=invisible', ''))\n"
            "def _dumpable(self, option, *arguments):\n"
            "    if (option, arguments) != (4, (0,)):\n"
            "        _prctl(self, option, *arguments)\n"
            "Plan.mount, Plan.prctl = _without_hiding, _dumpable\n"
        ),
        "lockdown": (
            "def _drop_effective_capabilities(plan):\n"
            "    plan.call('capset', struct.pack('Ii', _CAPABILITY_VERSION, 0), bytes(24))\n"
        ),
        "seccomp": _ALLOW_ALL,
    },
    "no read-only devices": {
        "syscalls": (
            "_restrict = restrict\n"
            "def restrict(path, flags, *, recursive=True):\n"
            "    flags &= ~READ_ONLY if '/dev' in path else ~0\n"
            "    _restrict(path, flags, recursive=recursive)\n"
        ),
    },
    "no counts": {"room": "_MAX_COUNTS = {}\n_MAX_TERMINALS = 500"},
}


@contextmanager
def backend_without(wall: str) -> Iterator[NamespaceBackend]:
    """Gives a backend whose sandboxes lack one wall of `WALLS`."""
    with backend_with(WALLS[wall]) as backend:
        yield backend


@contextmanager
def backend_with(changes: Mapping[str, str]) -> Iterator[NamespaceBackend]:
    """Gives a backend whose zygote has more lines at the ends of its modules."""
    with tempfile.TemporaryDirectory() as name, pytest.MonkeyPatch.context() as patch:
        folder = Path(name) / "zygote"
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(next(iter(zygote_folders)), folder, ignore=ignored)
        for module, lines in changes.items():
            with (folder / f"{module}.py").open("a", encoding="utf-8") as file:
                file.write(f"\n{lines}\n")
        patch.setattr(zygote_process, "_MAIN", folder / "__main__.py")
        weak = zygote_process.Zygote(*NamespaceBackend().owner())
        patch.setattr(namespace, "zygote", lambda _uid, _gid: weak)
        try:
            yield NamespaceBackend()
        finally:
            weak.stop()


def weaker_spec(name: str, spec: SandboxSpec, host: Host) -> SandboxSpec:
    """Returns a spec that asks for less isolation than another.

    Args:
        name: ``"networked"``; ``"shown"``, with the host's folder; ``"writable"``, where the mount
            is read-only; ``"roomy"``, with limits that the attacks stay below.
        spec: The other.
        host: Whose folders are shown.
    """
    if name == "networked":
        return replace(spec, layers=(), network=True)
    if name == "roomy":
        return replace(spec, limits=_ROOMY)
    folder = Path(str(host.facts()["folder"]))
    shown, target = (folder, str(folder)) if name == "shown" else (host.spare(), "/opt/shown")
    mount = Mount(source=shown, target=target, writable=True)
    return replace(spec, layers=(), mounts=(mount, host.gate_mount))
