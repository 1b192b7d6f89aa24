"""Compilers and runtimes of this machine, other than Python's, and their mounts in a sandbox."""

import os
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from coding_gym.errors import SandboxUnavailableError

SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_TIMEOUT_S = 30.0
# The programs that tasks of a language need, and Debian's packages that have them.
_LANGUAGES = {
    "c": (("cc", "make"), "build-essential"),
    "go": (("go",), "golang-go"),
    "java": (("javac", "java"), "default-jdk-headless"),
    "javascript": (("node",), "nodejs"),
    "rust": (("cargo", "rustc", "cc"), "cargo gcc"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Toolchain:
    """The host folders with which the programs of a language run in a sandbox.

    Attributes:
        folders: Host folders by the path at which a sandbox mounts them.
        path: Folders to put in front of ``PATH``.
        missing: Why the language cannot be used here, and the command that installs it; "" where
            it can.
    """

    folders: Mapping[str, Path] = field(default_factory=dict)
    path: tuple[str, ...] = ()
    missing: str = ""


@cache
def find_toolchain(language: str, *, visible_path: str = SYSTEM_PATH) -> Toolchain:
    """Returns the mounts for the programs of a language.

    Programs below ``/usr`` are always visible. They are preferred to programs elsewhere in
    ``PATH``, because they need no further mounts. If the system lacks a program, ``PATH`` is
    searched, and the installation, such as rustup's or nvm's, is mounted at ``/opt/<language>``.
    An unknown language needs no mounts.

    Args:
        language: ``c``, ``go``, ``java``, ``javascript``, ``rust``, or any other.
        visible_path: ``PATH`` of a sandbox without an image, all of which is visible in it.

    Raises:
        SandboxUnavailableError: rustup does not reply; the next call tries again.
    """
    programs, packages = _LANGUAGES.get(language, ((), ""))
    folders: list[Path] = []
    for program in programs:
        system = shutil.which(program, path=visible_path)
        if system is not None and Path(system).resolve().name != "rustup":
            continue
        folder = _installation(program)
        if folder is None:
            return Toolchain(
                missing=f"{language} needs {program!r}, which this machine does not have; "
                f"install it, for example with `apt-get install {packages}`"
            )
        if folder not in folders:
            folders.append(folder)
    mounted = {f"/opt/{language}{number or ''}": folder for number, folder in enumerate(folders)}
    return Toolchain(folders=mounted, path=tuple(f"{target}/bin" for target in mounted))


def _installation(program: str) -> Path | None:
    """Returns the folder whose ``bin`` has a program of PATH."""
    path = Path(shutil.which(program) or "/nonexistent").resolve()
    if path.name == "rustup":  # a proxy of the programs of its toolchains
        command = [str(path), "which", program]
        try:
            reply = subprocess.run(
                command, capture_output=True, timeout=_TIMEOUT_S, cwd="/", check=False
            )
        except (OSError, subprocess.SubprocessError) as error:
            raise SandboxUnavailableError(
                f"rustup could not be asked where {program} is: {error}",
                f"run `rustup which {program}`, and try again",
            ) from error
        path = Path(os.fsdecode(reply.stdout.strip()))
    is_usable = path.parent.name == "bin" and os.access(path, os.X_OK)
    return path.parent.parent if is_usable else None
