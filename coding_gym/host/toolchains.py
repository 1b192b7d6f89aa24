"""Compilers and runtimes of this machine, other than Python's, and how a sandbox shows them."""

import os
import shutil
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


@dataclass(frozen=True, slots=True)
class _Language:
    """The needs of tasks in a language.

    Attributes:
        programs: All of these.
        packages: Debian packages that have them.
        program_folders: Folders of programs, next to those of PATH; ``~`` is the home folder.
    """

    programs: tuple[str, ...]
    packages: str
    program_folders: tuple[str, ...] = ()


_LANGUAGES = {
    "c": _Language(("cc", "make"), "build-essential"),
    "go": _Language(("go",), "golang-go", ("/usr/local/go/bin",)),
    "java": _Language(("javac", "java"), "default-jdk-headless"),
    "javascript": _Language(("node",), "nodejs"),
    "rust": _Language(("cargo", "rustc", "cc"), "cargo gcc", ("~/.cargo/bin",)),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Toolchain:
    """The host folders with which the programs of a language run in a sandbox.

    Attributes:
        folders: Host folders by the path at which a sandbox shows them.
        path: Folders to put in front of ``PATH``.
        missing: Why the language cannot be used here, and the command that installs it; "" where
            it can.
    """

    folders: Mapping[str, Path] = field(default_factory=dict)
    path: tuple[str, ...] = ()
    missing: str = ""


@cache
def find_toolchain(language: str, *, visible_path: str = SYSTEM_PATH) -> Toolchain:
    """Returns how to show the programs of a language.

    Programs below ``/usr`` are always visible. They are taken even where ``PATH`` has newer ones
    elsewhere, because they need nothing that a sandbox does not show. A program that the system
    lacks is looked for in ``PATH``, and its installation, such as rustup's or nvm's, is mounted at
    ``/opt/<language>``. An unknown language needs nothing.

    Args:
        language: ``c``, ``go``, ``java``, ``javascript``, ``rust``, or any other.
        visible_path: ``PATH`` of a sandbox without an image, all of which is visible in it.
    """
    needs = _LANGUAGES.get(language)
    if needs is None:
        return Toolchain()
    folders: list[Path] = []
    for program in needs.programs:
        if _is_visible(program, visible_path):
            continue
        folder = _installation(program, needs.program_folders)
        if folder is None:
            return Toolchain(
                missing=f"{language} needs {program!r}, which this machine does not have; "
                f"install it, for example with `apt-get install {needs.packages}`"
            )
        if folder not in folders:
            folders.append(folder)
    mounted = {f"/opt/{language}{number or ''}": folder for number, folder in enumerate(folders)}
    return Toolchain(folders=mounted, path=tuple(f"{target}/bin" for target in mounted))


def _is_visible(program: str, path: str) -> bool:
    """Whether a program is one of the system's, and not rustup's proxy of one elsewhere."""
    found = shutil.which(program, path=path)
    return found is not None and Path(found).resolve().name != "rustup"


def _installation(program: str, program_folders: tuple[str, ...]) -> Path | None:
    """Returns the folder in whose ``bin`` a program lies that is not one of the system's."""
    own = (str(Path(folder).expanduser()) for folder in program_folders)
    folders = [os.environ.get("PATH", ""), *own]
    found = shutil.which(program, path=os.pathsep.join(folders))
    real = Path(found).resolve() if found else None
    if real is not None and real.name == "rustup":
        real = _rustup_program(program)
    if real is None or real.parent.name != "bin" or not os.access(real, os.X_OK):
        return None
    return real.parent.parent


def _rustup_program(program: str) -> Path | None:
    """Returns a program of rustup's default toolchain; rustup itself might download one."""
    home = Path(os.environ.get("RUSTUP_HOME") or Path.home() / ".rustup")
    try:
        settings = tomllib.loads((home / "settings.toml").read_text(encoding="utf-8"))
        return home / "toolchains" / str(settings["default_toolchain"]) / "bin" / program
    except (OSError, ValueError, KeyError):
        return None
