"""Writes base trees to disk: the files, the sealed git folders, their owner and times."""

import hashlib
import shutil
import time
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from coding_gym.sandbox.layer_union import set_metadata
from coding_gym.task import FilesTree, GitTree, ImageTree, Task, Tree
from coding_gym.workspace.base_git import BaseFiles, exclude_patterns, list_base, write_base_git
from coding_gym.workspace.clones import Clones, fetch_failure, named_commit
from coding_gym.workspace.history import (
    checkout_commit,
    commit_date,
    commit_files,
    init_repository,
    seal_repository,
    task_date,
)
from coding_gym.workspace.host_git import HostGitError
from coding_gym.workspace.image_tree import ImageTrees
from coding_gym.workspace.plain_tree import (
    copy_files,
    digest_tree,
    encode,
    reverse_apply,
    write_tree,
)
from coding_gym.workspace.stamping import stamp

# Generations of history in a checkout of a git repository; with merges, a generation has several
# commits.
_DEPTH = 50


@dataclass(frozen=True, slots=True)
class Checkout:
    """A base tree on disk.

    Attributes:
        tree: The folder of the tree, with ``.git``.
        base_git: The second git folder.
        commit: The sha of the base commit.
        date: The date of the commit and of every file.
        base: The files of the commit.
    """

    tree: Path
    base_git: Path
    commit: str
    date: datetime
    base: BaseFiles


@dataclass(frozen=True, slots=True)
class Checkouts:
    """Writes checkouts of tasks' base trees.

    Attributes:
        clones: Finds the repositories that have the commits.
        images: Copies trees out of images.
    """

    clones: Clones
    images: ImageTrees

    def digest(self, task: Task, *, field: str = "base_commit") -> str:
        """Returns a digest of the content and history that `write` writes.

        Args:
            task: The task.
            field: As for `write`.

        Raises:
            InvalidTaskError: The tree does not exist, or a field of the task cannot be used.
        """
        tree = _tree(task, field)
        if isinstance(tree, GitTree):
            return f"{named_commit(task, field)} {_DEPTH}{_patch_digest(task, tree)}"
        date = task_date(task).isoformat()
        if isinstance(tree, ImageTree):
            return (
                f"{self.images.identity(task)} {task.image_path} {date}{_patch_digest(task, tree)}"
            )
        return f"{digest_tree(task, tree)} {date}"

    def write(self, task: Task, folder: Path, *, field: str = "base_commit") -> Checkout:
        """Writes a base tree to ``folder/tree``, and creates an empty ``folder/base.git``.

        Args:
            task: The task.
            folder: A folder without these entries.
            field: ``base_commit``, or ``environment_setup_commit`` for the tree in which the
                environment is built: a commit of a git repository, without the reverse patch.

        Raises:
            InvalidTaskError: The tree or commit does not exist, or a field cannot be used.
            TemplateError: A repository cannot be fetched.
        """
        tree, base_git = folder / "tree", folder / "base.git"
        tree.mkdir()
        base_git.mkdir()
        init_repository(tree)
        origin = _tree(task, field)
        if isinstance(origin, GitTree):
            commit, date = self._write_commit(task, origin, tree, field)
        elif isinstance(origin, ImageTree):
            date = task_date(task)
            copy = self.images.get(task, date)
            copy_files(copy.base, tree)
            reverse_apply(task, origin.reverse_patch, tree)
            commit = commit_files(tree, date, with_ignored=copy.is_sorted)
        else:
            date = task_date(task)
            write_tree(task, origin, tree)
            commit = commit_files(tree, date, with_ignored=isinstance(origin, FilesTree))
        return Checkout(tree, base_git, commit, date, list_base(tree))

    def _write_commit(
        self, task: Task, origin: GitTree, tree: Path, field: str
    ) -> tuple[str, datetime]:
        """Writes the files of a commit, with its history if the tree has no reverse patch."""
        commit = named_commit(task, field)
        try:
            source = self.clones.source(task, origin, commit)
            depth = 1 if origin.reverse_patch else _DEPTH
            checkout_commit(tree, source, commit, depth, self.clones.timeout_s)
        except HostGitError as error:
            raise fetch_failure(task, origin, field, error) from error
        date = commit_date(tree)
        if origin.reverse_patch:
            shutil.rmtree(tree / ".git")
            init_repository(tree)
            reverse_apply(task, origin.reverse_patch, tree)
            commit = commit_files(tree, date, with_ignored=True)
        return commit, date


def _tree(task: Task, field: str) -> Tree:
    """Returns the source of the tree for a field, as `Checkouts.write` takes it."""
    if field == "base_commit" or isinstance(task.tree, FilesTree):
        return task.tree
    return replace(task.tree, reverse_patch="")


def _patch_digest(task: Task, tree: GitTree | ImageTree) -> str:
    digest = hashlib.sha256(encode(task, "'reverse_patch'", tree.reverse_patch)).hexdigest()
    return f" {digest}" if tree.reverse_patch else ""


def seal(checkout: Checkout, artifacts: tuple[str, ...], owner: tuple[int, int]) -> None:
    """Completes both git folders of a checkout; sets owner, modes and times of all files.

    Args:
        checkout: The checkout.
        artifacts: Paths that the environment's build made in the tree; git ignores them.
        owner: The host uid and gid that must own the files.
    """
    seal_repository(checkout.tree, exclude_patterns(artifacts))
    exclude = exclude_patterns((*artifacts, *checkout.base.gitlinks))
    write_base_git(checkout.base_git, checkout.tree, checkout.base, exclude)
    for folder in (checkout.tree, checkout.base_git):
        stamp(folder, checkout.date, owner)


def store_index(checkout: Checkout, index: bytes, owner: tuple[int, int]) -> None:
    """Writes a refreshed index into both git folders.

    The date of the index is one second after the date of the files, because git trusts the size and
    times only of files that are older than the index ("racy git"). If this second has not passed
    yet, the function waits for its end, so that edits of a policy are younger than the index.
    """
    for folder in (checkout.tree / ".git", checkout.base_git):
        path = folder / "index"
        path.write_bytes(index)
        index_s = int(checkout.date.timestamp()) + 1
        set_metadata(path, owner, 0o644, (index_s * 10**9, index_s * 10**9))
    wait_s = checkout.date.timestamp() + 1 - time.time()
    if 0 < wait_s <= 1:
        time.sleep(wait_s)
