"""Trees of files and git repositories of the tests' own making."""

import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

import git


def write_files(folder: Path, files: Mapping[str, str | bytes]) -> Path:
    """Writes files below a folder, and returns the folder."""
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return folder


def commit(
    folder: Path,
    files: Mapping[str, str | bytes],
    message: str = "a change",
    date: str = "2020-02-02 02:02:02 +0000",
) -> str:
    """Writes files and commits them, in a new repository if there is none; returns the commit."""
    write_files(folder, files)
    someone = git.Actor("someone", "someone@example.org")
    with git.Repo.init(folder, initial_branch="main") as repository:
        repository.git.add("--all")
        made = repository.index.commit(
            message, author=someone, committer=someone, author_date=date, commit_date=date
        )
        return made.hexsha


def run_git(folder: Path, *arguments: str) -> str:
    """Runs git in a folder, and returns what it says."""
    identity = ("-c", "user.name=a", "-c", "user.email=a@b", "-c", "init.defaultBranch=main")
    command = [str(shutil.which("git")), *identity, *arguments]
    return subprocess.run(
        command, cwd=folder, check=True, capture_output=True, text=True
    ).stdout.strip()
