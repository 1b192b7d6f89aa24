"""An attacker, a sibling beside it, and settings in which one wall or another is missing."""

import os
import select
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from attack import IMPORTS, Attack
from missing_walls import WALLS, backend_without, weaker_spec
from sentinels import Host

from coding_gym.calls import ExecResult
from coding_gym.errors import SandboxError
from coding_gym.sandbox import SandboxLimits, SandboxSpec, default_interpreter
from coding_gym.sandbox.namespace import NamespaceBackend
from coding_gym.sandbox.namespace_sandbox import NamespaceSandbox

# Small enough that an attack on them is over soon.
TIGHT = SandboxLimits(
    disk_bytes=16 << 20,
    num_inodes=2000,
    num_processes=40,
    file_bytes=4 << 20,
    num_open_files=128,
    memory_bytes=128 << 20,
)
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

    def hold_off(
        self,
        attack: Attack,
        limits: SandboxLimits | None = None,
        meanwhile: Callable[[], None] = lambda: None,
    ) -> None:
        """Runs an attack and asserts that it failed, and that nobody else was harmed.

        Args:
            attack: What is done.
            limits: Those of the attacker.
            meanwhile: What else is looked at while an attack `lasts`.
        """
        spec = replace(self.spec, limits=limits or self.spec.limits)
        with self.backend.open(spec) as attacker:
            report = self._run(attack, attacker, meanwhile)
            attack.assert_held(report)
            assert_alone(attacker)
        self.assert_unharmed()

    def fall_to(self, attack: Attack) -> None:
        """Runs an attack in its weaker setting and asserts that it gets through."""
        if attack.weaker == "host":
            report = self._run_on_host(attack)
        else:
            with self._weaker(attack.weaker) as attacker:
                if attack.falls == "dies":
                    with pytest.raises(SandboxError):
                        self._run(attack, attacker)
                    return
                report = self._run(attack, attacker)
        self.host.answer_calls()
        attack.assert_fell(report)

    def report_without(self, wall: str, attack: Attack) -> str:
        """Returns the report of an attack on a sandbox that lacks a wall."""
        with self._weaker(wall) as attacker:
            return self._run(attack, attacker)

    def run(self, attack: Attack, attacker: NamespaceSandbox) -> ExecResult:
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
    def open(self) -> Iterator[NamespaceSandbox]:
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

    def _run(
        self,
        attack: Attack,
        attacker: NamespaceSandbox,
        meanwhile: Callable[[], None] = lambda: None,
    ) -> str:
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
            meanwhile()
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

    @contextmanager
    def _weaker(self, name: str) -> Iterator[NamespaceSandbox]:
        """Opens a sandbox in which something is missing that the usual one has."""
        if name in WALLS:
            with backend_without(name) as backend, backend.open(self.spec) as attacker:
                yield attacker
            return
        with self.backend.open(weaker_spec(name, self.spec, self.host)) as attacker:
            yield attacker


def assert_alone(attacker: NamespaceSandbox) -> None:
    """Asserts that a sandbox works, and that its first process is alone in it, seen from here."""
    assert attacker.run("echo alive").output == "alive\n"
    first = attacker._life.channel.peer_pid(timeout_s=_TIMEOUT_S)
    assert Path(f"/proc/{first}/task/{first}/children").read_text(encoding="ascii") == ""
