"""The files of a commit in a repository on this machine, read without a checkout."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from coding_gym.addresses import find_repository
from coding_gym.errors import InvalidTaskError
from coding_gym.workspace.host_git import HostGit, HostGitError

_REGULAR = ("100644", "100755")


@dataclass(frozen=True, slots=True)
class CommitReader:
    """Reads commits of one repository; see `open_repository`."""

    _git: HostGit
    _folder: Path
    _repository: str

    def date(self, commit: str) -> str:
        """Returns the committer's date of a commit, in ISO 8601.

        Raises:
            InvalidTaskError: The repository has no such commit.
        """
        return self._run(commit, "show", "--no-patch", "--format=%cI", commit)

    def find(self, name: str) -> str | None:
        """Returns the full sha of what a name stands for, such as ``0123abc^{commit}``.

        None where the repository has no such object, or more than one whose sha begins so.
        """
        try:
            return self._git.run("rev-parse", "--verify", name, cwd=self._folder)
        except HostGitError:
            return None

    def texts(self, commit: str, max_file_bytes: int) -> dict[str, str]:
        """Returns the text of a commit's files by path.

        Bytes that are not UTF-8 are held as surrogate escapes; binary files, symlinks and files
        that the repository's own clone left out are not among them.

        Args:
            commit: A full sha.
            max_file_bytes: Larger files are left out.

        Raises:
            InvalidTaskError: The repository has no such commit.
        """
        listing = self._run(commit, "ls-tree", "-r", "-z", "-l", commit)
        found: list[tuple[str, str, int]] = []
        for entry in filter(None, listing.split("\0")):
            facts, path = entry.split("\t", 1)
            mode, _, blob, size = facts.split()
            # A clone may lack blobs; git gives no size for those.
            if mode in _REGULAR and size.isdigit() and int(size) <= max_file_bytes:
                found.append((path, blob, int(size)))
        if not found:
            return {}
        # Whole blobs, one after another without anything between them.
        text = self._run(commit, "show", "--no-textconv", *(blob for _, blob, _ in found))
        data = os.fsencode(text) + b"\n"  # which `run` took off, if it was there
        texts, at = {}, 0
        for path, _, length in found:
            content = data[at : at + length]
            at += length
            if b"\0" not in content:
                texts[path] = content.decode("utf-8", "surrogateescape")
        return texts

    def _run(self, commit: str, *arguments: str) -> str:
        try:
            return self._git.run(*arguments, cwd=self._folder)
        except HostGitError as error:
            raise InvalidTaskError(
                f"{self._repository} does not have commit {commit}, or not all of it: {error}"
            ) from error


@contextmanager
def open_repository(repository: Path) -> Iterator[CommitReader]:
    """Opens a repository, bare or not, for reading.

    Git runs in an empty repository of ours that borrows the other's objects: whatever the other one
    configures (hooks, filters, helpers, remotes to fetch from) is never read.

    Raises:
        InvalidTaskError: There is no git repository.
        MissingDependencyError: There is no git on this machine.
    """
    found = find_repository(repository)
    borrowed = found and _git_folder(found) / "objects"
    if borrowed is None or not borrowed.is_dir():
        raise InvalidTaskError(f"{repository} is not a git repository with objects of its own")
    with tempfile.TemporaryDirectory(prefix="coding-gym-") as scratch:
        folder = Path(scratch) / "repository.git"
        git = HostGit(Path(scratch) / "git-settings")
        git.run("init", "--quiet", "--bare", "--template=", str(folder), cwd=Path(scratch))
        info = folder / "objects" / "info"
        info.mkdir(parents=True, exist_ok=True)
        (info / "alternates").write_bytes(os.fsencode(borrowed) + b"\n")
        yield CommitReader(git, folder, str(repository))


def _git_folder(repository: Path) -> Path:
    git = repository / ".git"
    if not git.is_file():
        return git if git.is_dir() else repository
    folder = repository / _line(git).removeprefix("gitdir: ")  # a worktree names its folder
    common = folder / "commondir"
    return folder / _line(common) if common.is_file() else folder


def _line(path: Path) -> str:
    return os.fsdecode(path.read_bytes()).strip()
