"""Finds compilers and runtimes other than Python on this machine; makes their mounts."""

import shutil
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

# ``PATH`` of a sandbox without an image; all these folders are visible in it.
SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
# By language: the programs that its tasks need, and the Debian packages to install.
_LANGUAGES = {
    "c": (("cc", "make"), "build-essential"),
    "go": (("go",), "golang-go"),
    "java": (("javac", "java"), "default-jdk-headless"),
    "javascript": (("node",), "nodejs"),
    "rust": (("cargo", "rustc", "cc"), "cargo gcc"),
}
# Private folders in a home folder; their subfolders, such as uv's installations, can be mounted.
_PRIVATE_NAMES = (".cargo", ".config", ".local", ".ssh")


class Toolchain(NamedTuple):
    """The host folders with which the programs of a language run in a sandbox.

    Attributes:
        folders: Host folders by the path at which a sandbox mounts them; programs are in ``bin``.
        missing: The program that this machine lacks, and the command that installs it; "" if all
            programs are available.
    """

    folders: Mapping[str, Path]
    missing: str = ""


def find_toolchain(language: str) -> Toolchain:
    """Returns the mounts for the programs of a language.

    Programs below ``/usr`` are always visible. These programs are preferred to programs elsewhere
    in ``PATH``, because they need no further mounts. If a program is not below ``/usr``, ``PATH``
    is searched, and the installation that contains the program (such as one that nvm made) is
    mounted at ``/opt/<language>``. Private installations and unknown languages have no mounts.

    Args:
        language: ``c``, ``go``, ``java``, ``javascript``, ``rust``, or another name.
    """
    programs, packages = _LANGUAGES.get(language, ((), ""))
    folders: dict[str, Path] = {}
    for program in programs:
        if _real_path(program, SYSTEM_PATH) is not None:
            continue
        path = _real_path(program)
        if path is None or path.parent.name != "bin" or is_private(path.parent.parent):
            return Toolchain(
                {},
                f"{language} needs {program!r}, which is not in /usr or PATH "
                "(private home folders are not used); "
                f"install it, for example with `apt-get install {packages}`",
            )
        if path.parent.parent not in folders.values():
            folders[f"/opt/{language}{len(folders) or ''}"] = path.parent.parent
    return Toolchain(folders)


def home_folder() -> Path:
    """Returns the user's home folder; for a user without one, a folder that does not exist."""
    with suppress(RuntimeError):
        return Path.home()
    return Path("/nonexistent")


def is_private(folder: Path) -> bool:
    """Returns whether a folder has private files of the user, so that no sandbox may mount it."""
    home = home_folder().resolve()
    return home.is_relative_to(folder) or folder in {home / name for name in _PRIVATE_NAMES}


def _real_path(program: str, search_path: str | None = None) -> Path | None:
    """Returns the real path of a program; None for rustup's proxies, which need a toolchain."""
    name = shutil.which(program, path=search_path)
    path = Path(name or "").resolve()
    return path if name and path.name != "rustup" else None
