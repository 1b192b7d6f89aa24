"""Sandboxes for an attacker, a sibling beside them, and ablations: attackers less confined."""

import os
import select
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from attack import IMPORTS, TIGHT, Attack
from checks import debug
from sentinels import Host

from coding_gym.calls import ExecResult
from coding_gym.errors import SandboxError
from coding_gym.sandbox import Mount, Sandbox, SandboxLimits, SandboxSpec, default_interpreter
from coding_gym.sandbox.namespace import NamespaceBackend

_ROOMY = SandboxLimits(num_processes=1000, num_open_files=4096)
_TIMEOUT_S = 20.0
# Before the script of a host's attacker: root has rights that no sandbox has.
_STEP_DOWN = """
if os.geteuid() != {0}:
    os.setgroups([]); os.setresgid({1}, {1}, {1}); os.setresuid({0}, {0}, {0})
    ctypes.CDLL(None).prctl(4, 1, 0, 0, 0)
"""


class Arena:
    """Runs attacks, each in a sandbox of its own, and looks at what they left behind."""

    def __init__(self, host: Host) -> None:
        self.host = host
        self.backend = NamespaceBackend()
        self.spec = SandboxSpec(
            layers=(host.layer,),
            mounts=(*host.mounts, host.gate_mount),
            python=default_interpreter(),
        )
        self.tight = replace(self.spec, limits=TIGHT)
        self.sibling = self.backend.open(
            SandboxSpec(layers=(host.layer,), mounts=host.mounts, python=default_interpreter())
        )
        self.sibling.write_file("own.txt", b"the sibling's")
        self.sibling.write_file("/tmp/own.txt", b"the sibling's")
        self.sibling.write_file("secret.txt", host.marker.encode())
        self._listing = self._look_at_sibling()

    def close(self) -> None:
        """Ends the sibling."""
        self.sibling.close()

    def assert_blocked(self, attack: Attack) -> None:
        """Runs an attack and asserts that it failed, and that nobody else was harmed."""
        spec = replace(self.spec, limits=attack.limits or self.spec.limits)
        with self.backend.open(spec) as attacker:
            attack.assert_blocked(self._run(attack, attacker))
            assert_alone(attacker)
        self.assert_unharmed()

    def assert_succeeds(self, attack: Attack) -> None:
        """Runs an attack under its ablation and asserts that it succeeds."""
        if attack.ablation == "sandbox":
            report = self._run_on_host(attack)
        else:
            with self.without(attack.ablation) as attacker:
                if attack.succeeds == "dies":
                    with pytest.raises(SandboxError):
                        self._run(attack, attacker)
                    return
                report = self._run(attack, attacker)
        self.host.answer_calls()
        attack.assert_succeeded(report)

    def run(self, attack: Attack, attacker: Sandbox) -> ExecResult:
        """Runs an attack's script in a sandbox."""
        source = IMPORTS + attack.source(self.host.facts())
        attacker.write_file("/tmp/attack.py", source.encode())
        return attacker.run("python /tmp/attack.py", timeout_s=_TIMEOUT_S)

    def assert_unharmed(self) -> None:
        """Asserts that host and sibling are as they were, and that the sibling works."""
        assert self._look_at_sibling() == self._listing
        self.host.assert_unharmed()

    def wait_for_attack(self) -> None:
        """Waits until a script says that it is at its height."""
        poller = select.poll()
        poller.register(self.host.here, select.POLLIN)
        assert poller.poll(_TIMEOUT_S * 1000), "the attack did not get to its height"
        os.read(self.host.here, 1)

    @contextmanager
    def without(self, protection: str) -> Iterator[Sandbox]:
        """Opens an attacker's sandbox that lacks a protection.

        Args:
            protection: One of `debug.ABLATIONS`, or of those that a spec can do without:
                ``"network isolation"``; ``"private root"``, with the host's folder mounted;
                ``"read-only mounts"``; ``"tight limits"``.
        """
        if protection in debug.ABLATIONS:
            with debug.without(protection) as backend, backend.open(self.spec) as attacker:
                yield attacker
            return
        with self.backend.open(self._less_confined(protection)) as attacker:
            yield attacker

    @contextmanager
    def open(self) -> Iterator[Sandbox]:
        """Opens an attacker for what is no single script; looks at the damage in the end."""
        with self.backend.open(self.spec) as attacker:
            yield attacker
            assert_alone(attacker)
        self.assert_unharmed()

    def _look_at_sibling(self) -> str:
        command = "cat own.txt /tmp/own.txt shared.txt folder/inner.txt /opt/shown/file; ls -lR"
        result = self.sibling.run(command)
        assert result.ok
        return result.output

    def _run(self, attack: Attack, attacker: Sandbox) -> str:
        if not attack.lasts:
            return self.run(attack, attacker).output
        reports: list[str] = []

        def run() -> None:
            reports.append(self.run(attack, attacker).output)

        thread = threading.Thread(target=run)
        thread.start()
        try:
            self.wait_for_attack()
            self.assert_unharmed()
            attack.meanwhile()
        finally:
            os.write(self.host.go, b"x")
            thread.join()
        return reports[0]

    def _run_on_host(self, attack: Attack) -> str:
        rights = _STEP_DOWN.format(*self.host.owner)
        source = IMPORTS + rights + attack.source(self.host.facts())
        return subprocess.run(
            [sys.executable, "-I", "-c", source],
            capture_output=True,
            text=True,
            timeout=_TIMEOUT_S,
            env={"PATH": os.defpath},
            cwd="/",
        ).stdout

    def _less_confined(self, protection: str) -> SandboxSpec:
        """Returns a spec of a whole sandbox that asks for less isolation."""
        if protection == "network isolation":
            return replace(self.spec, layers=(), network=True)
        if protection == "tight limits":
            return replace(self.spec, limits=_ROOMY)
        folder = Path(str(self.host.facts()["folder"]))
        mounts = {
            "private root": Mount(source=folder, target=str(folder), writable=True),
            "read-only mounts": Mount(source=self.host.spare(), target="/opt/shown", writable=True),
        }
        return replace(self.spec, layers=(), mounts=(mounts[protection], self.host.gate_mount))


@pytest.fixture(scope="module")
def arena() -> Iterator[Arena]:
    """The arena in which every attack of a module takes place."""
    with closing(Host(NamespaceBackend().owner())) as host, closing(Arena(host)) as opened:
        yield opened


def assert_alone(attacker: Sandbox) -> None:
    """Asserts that a sandbox works, and that its first process is alone in it, seen from here."""
    assert attacker.run("echo alive").output == "alive\n"
    first = debug.first_pid(attacker)
    assert Path(f"/proc/{first}/task/{first}/children").read_text(encoding="ascii") == ""


def assert_bomb_ends(arena: Arena, bomb: str) -> None:
    """Asserts that what a command starts without end is over after its time limit."""
    spec = SandboxSpec(mounts=arena.spec.mounts, limits=TIGHT)
    with arena.backend.open(spec) as attacker:
        # The shell itself forks no more: without a free process it would end early.
        result = attacker.run(f"{{ {bomb}; }} & exec sleep 60", timeout_s=0.5)
        assert result.timed_out
        assert_alone(attacker)
    arena.assert_unharmed()
