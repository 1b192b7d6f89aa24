"""The ``process`` backend: plain processes in a temporary copy. No isolation; for debugging."""

import os
import warnings
from pathlib import Path
from typing import Any

from coding_gym.errors import InvalidArgumentError, SandboxError, SandboxUnavailableError
from coding_gym.sandbox import cgroups, host_folder
from coding_gym.sandbox.inside.spawn import BASH
from coding_gym.sandbox.inside.syscalls import SetupError
from coding_gym.sandbox.protocol import Probe, Promise, Snapshot
from coding_gym.sandbox.served_sandbox import ServedSandbox
from coding_gym.sandbox.spec import SandboxSpec
from coding_gym.sandbox.zygotes import require_linux

_KEPT = frozenset(
    {
        Promise.FOLDER_RENAMES,
        Promise.NO_ESCAPED_PROCESSES,
        Promise.MEMORY_LIMIT,
        Promise.PERSISTENT_SHELL,
        Promise.OWN_PYTHON,
        Promise.ENDS_WITH_OWNER,
    }
)
_OF_GROUPS = frozenset({Promise.PROCESS_LIMIT, Promise.CPU_LIMIT})


class NoIsolationWarning(UserWarning):
    """Commands run with the rights of this process."""


class ProcessBackend:
    """Runs commands as ordinary processes in a temporary copy of the layers."""

    @property
    def name(self) -> str:
        """``"process"``."""
        return "process"

    def owner(self) -> tuple[int, int]:
        """Returns the uid and gid of this process."""
        return os.geteuid(), os.getegid()

    def image_id(self, image: str) -> str:
        """Raises InvalidArgumentError: this backend runs no images."""
        raise InvalidArgumentError(f"the {self.name!r} sandbox cannot run the image {image!r}")

    def probe(self) -> Probe:
        """Returns a probe in which nearly every promise is missing."""
        try:
            _require_linux()
        except SandboxUnavailableError as error:
            return Probe(available=False, detail=error.problem, remedy=error.remedy)
        detail = "commands run as this user, with no isolation; only when named"
        return Probe(available=True, detail=detail, missing=_missing())

    def open(self, spec: SandboxSpec, *, snapshot: Snapshot | None = None) -> ServedSandbox:
        """Opens a sandbox that isolates nothing, and warns about that.

        See `coding_gym.sandbox.protocol.SandboxBackend.open`.
        """
        warnings.warn(
            "the 'process' sandbox isolates nothing: commands run with your rights",
            NoIsolationWarning,
            stacklevel=2,
        )
        _require_linux()
        try:
            return host_folder.open_sandbox(
                self.name,
                spec,
                snapshot,
                owner=self.owner(),
                missing=_missing(),
                prepare=self._prepare,
            )
        except SetupError as error:
            raise SandboxError(str(error)) from error

    def _prepare(
        self, folder: Path, spec: SandboxSpec
    ) -> tuple[host_folder.HostFolder, dict[str, Any]]:
        files = host_folder.fill(folder, spec, self.owner(), has_tmp=False)
        env = host_folder.variables(spec, files)
        # The programs of this machine need not be where Linux systems usually have them.
        env["PATH"] += ":" + os.environ.get("PATH", os.defpath)
        return files, {"env": env, "landlock": None}


def _missing() -> tuple[Promise, ...]:
    kept = _KEPT | (_OF_GROUPS if cgroups.delegation().folder else frozenset())
    return tuple(promise for promise in Promise if promise not in kept)


def _require_linux() -> None:
    require_linux("process")
    if not os.access(BASH, os.X_OK):
        raise SandboxUnavailableError(f"there is no {BASH}", "install bash")
