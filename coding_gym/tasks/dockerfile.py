"""Dockerfiles that need no daemon: a Python or Debian base that the host can stand in for."""

import json
import re
import shlex
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from coding_gym.errors import InvalidTaskError
from coding_gym.host.interpreters import default_interpreter
from coding_gym.task import FilesTree, FolderTree, Tree

_OFFICIAL = r"(?:docker\.io/)?(?:library/)?"
_BASE = re.compile(
    rf"{_OFFICIAL}(?:(python)|debian|ubuntu)(?::(\d+\.\d+)?[\w.-]*)?(?:@sha256:\w+)?"
)
# Instructions without effect: a sandbox has one user, and the caller names every command.
_WITHOUT_EFFECT = ("USER", "LABEL", "CMD", "EXPOSE")
_USER_PROGRAMS = {"useradd", "adduser", "groupadd", "addgroup", "usermod", "chown"}
_PACKAGES = Path("/var/lib/dpkg/info")


@dataclass(kw_only=True)
class Dockerfile:
    """The content of a Dockerfile.

    Attributes:
        interpreter: As in `coding_gym.task.Task`.
        workdir: The last ``WORKDIR``.
        env: Variables of ``ENV``.
        copies: Pairs of a file or folder of the host and its absolute path in the image.
        commands: The ``RUN`` steps, without those of apt and those that make users; none where they
            install only the pytest that environments have in any case.
        num_copied_first: How many of ``copies`` come before the last of ``commands``.
    """

    interpreter: str = "base"
    workdir: str = "/"
    env: dict[str, str] = field(default_factory=dict)
    copies: list[tuple[Path, str]] = field(default_factory=list)
    commands: list[str] = field(default_factory=list)
    num_copied_first: int = 0

    def tree(self, *, for_commands: bool = False) -> Tree:
        """Returns the files that are copied to ``workdir`` as the tree of a task.

        Args:
            for_commands: Whether to leave out what is copied after the last of ``commands``.

        Raises:
            InvalidTaskError: A file is binary, and the tree is more than one folder.
        """
        copies = self.copies[: self.num_copied_first] if for_commands else self.copies
        copies = [(source, path) for source, path in copies if is_below(path, self.workdir)]
        if len(copies) == 1 and copies[0][0].is_dir() and is_below(self.workdir, copies[0][1]):
            return FolderTree(str(copies[0][0]))
        files = {}
        for source, path in copies:
            for file in sorted(source.rglob("*")) if source.is_dir() else [source]:
                if file.is_file():
                    place = PurePosixPath(path, file.relative_to(source)).relative_to(self.workdir)
                    files[str(place)] = read_utf8(file)
        return FilesTree(files)


def is_below(path: str, folder: str) -> bool:
    """Whether a path is a folder or in it."""
    return PurePosixPath(path).is_relative_to(folder)


def read_utf8(path: Path) -> str:
    """Returns a file's text.

    Raises:
        InvalidTaskError: It is binary.
    """
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise InvalidTaskError(f"{path} is binary; copy it with its whole folder") from None


def read_dockerfile(path: Path) -> Dockerfile:
    """Reads a Dockerfile whose build context is its own folder.

    Raises:
        InvalidTaskError: An instruction needs a daemon, or is not known; names line and text.
    """
    found = Dockerfile()
    num_bases = 0
    for number, name, text in _instructions(path):
        where = f"{path} line {number}: {name} {text!r:.120}"
        num_bases += name == "FROM"
        if num_bases != 1:
            raise InvalidTaskError(f"{where}: there must be one FROM, in the first place")
        _read(found, name, text, path.parent, where)
    if all(_is_at_hand(command) for command in found.commands):
        found.commands.clear()
    return found


def _read(found: Dockerfile, name: str, text: str, context: Path, where: str) -> None:
    """Adds what one instruction says."""
    if name == "FROM":
        found.interpreter = base_interpreter(text, where)
    elif name == "WORKDIR":
        found.workdir = str(PurePosixPath(found.workdir, text.strip('"')))
    elif name == "ENV":
        found.env |= _variables(text, where)
    elif name == "COPY":
        found.copies += _copies(text, context, found.workdir, where)
    elif name == "RUN":
        if command := _command(text, where):
            found.commands.append(command)
            found.num_copied_first = len(found.copies)
    elif name not in _WITHOUT_EFFECT:
        raise InvalidTaskError(
            f"{where}: without a daemon only FROM, WORKDIR, COPY, ENV, RUN, "
            f"{', '.join(_WITHOUT_EFFECT)} work"
        )


def base_interpreter(image: str, where: str) -> str:
    """Returns the interpreter of this machine that stands in for an image.

    Raises:
        InvalidTaskError: None does.
    """
    match = _BASE.fullmatch(image.strip())
    if match is None:
        raise InvalidTaskError(
            f"{where}: without a daemon only the official images python, debian and ubuntu have a "
            "stand-in on this machine"
        )
    version = (match[1] and match[2]) or ""
    is_running = f"{default_interpreter().version}.".startswith(f"{version}.")
    return "base" if is_running or not version else version


def _instructions(path: Path) -> Iterator[tuple[int, str, str]]:
    """Yields line, name and text of each instruction."""
    pending, start = "", 0
    for number, line in enumerate(read_utf8(path).splitlines(), 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        start = start if pending else number
        pending += line.strip().removesuffix("\\")
        if line.rstrip().endswith("\\"):
            continue
        name, _, text = pending.partition(" ")
        if "<<" in text:
            raise InvalidTaskError(f"{path} line {start}: here-documents are not read; use COPY")
        yield start, name.upper(), text.strip()
        pending = ""


def _variables(text: str, where: str) -> dict[str, str]:
    words = _words(text, where)
    if "=" not in words[0]:
        return {words[0]: " ".join(words[1:])}
    return dict(word.split("=", 1) for word in words if "=" in word)


def _copies(text: str, context: Path, workdir: str, where: str) -> list[tuple[Path, str]]:
    words = _words(text, where)
    if text.startswith("["):
        with suppress(ValueError):  # else it is a pattern such as [ab].py
            words = [str(word) for word in json.loads(text)]
    options = [word for word in words if word.startswith("--")]
    *sources, target = [word for word in words if not word.startswith("--")] or [""]
    if not sources:
        raise InvalidTaskError(f"{where}: COPY must name a source and a target, got {text!r}")
    if any(not option.startswith(("--chown=", "--chmod=")) for option in options):
        raise InvalidTaskError(f"{where}: COPY takes files of its own folder alone")
    found = []
    for source in sources:
        file = (context / source.lstrip("/")).resolve()
        if not file.is_relative_to(context.resolve()) or not file.exists():
            raise InvalidTaskError(f"{where}: there is no {source!r} in {context}")
        is_into = file.is_file() and (target.endswith(("/", ".")) or len(sources) > 1)
        place = PurePosixPath(workdir, target, file.name if is_into else "")
        found.append((file, str(place)))
    return found


def _command(text: str, where: str) -> str:
    """Returns what a RUN step installs; "" where the sandbox needs none of it."""
    kept = []
    for part in re.split(r"\s*&&\s*", text):
        words = _words(part, where) if part.count("'") % 2 == part.count('"') % 2 == 0 else [""]
        if words[:1] == [""]:
            return text  # quoted operators: one command
        if words[0] in ("apt-get", "apt"):
            _check_packages(words[1:], where)
        elif words[0] not in _USER_PROGRAMS and not part.startswith("rm -rf /var/lib/apt"):
            kept.append(part)
    return " && ".join(kept)


def _is_at_hand(command: str) -> bool:
    """Whether a step installs nothing but the pytest that every environment here has."""
    # Here, because it opens sandboxes, which importing the package must not bring along.
    from coding_gym.workspace.pytest_layer import pytest_distributions

    if not command.startswith("pip install "):
        return False
    wanted = {word for word in shlex.split(command)[2:] if not word.startswith("-")}
    layer = pytest_distributions(default_interpreter().version)
    return wanted <= {f"{package.name}=={package.version}" for package in layer}


def _check_packages(words: list[str], where: str) -> None:
    names = [word.partition("=")[0] for word in words if not word.startswith("-")]
    for name in names[1:] if names[:1] == ["install"] else []:
        if not any(_PACKAGES.glob(f"{name}.list")) and not any(_PACKAGES.glob(f"{name}:*.list")):
            raise InvalidTaskError(
                f"{where}: this machine stands in for the image and lacks package {name!r}; run: "
                f"apt-get install {name}"
            )


def _words(text: str, where: str) -> list[str]:
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise InvalidTaskError(f"{where}: {error}") from None
    if not words:
        raise InvalidTaskError(f"{where}: says nothing")
    return words
