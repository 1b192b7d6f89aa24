"""Writes base trees: files, git folders with fixed settings, and owner and times of all files."""

import hashlib
import os
import shutil
import time
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from coding_gym.sandbox.layer_union import set_metadata, united
from coding_gym.task import FilesTree, FolderTree, GitTree, ImageTree, Task
from coding_gym.workspace.base_git import BaseFiles, exclude_patterns, list_base, write_base_git
from coding_gym.workspace.clones import Clones, base_commit, fetch_failure
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
    source_folder,
    write_files,
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

    def digest(self, task: Task) -> str:
        """Returns a digest of the content and history that `write` writes.

        Raises:
            InvalidTaskError: The tree does not exist, or a field of the task cannot be used.
        """
        tree = task.tree
        if isinstance(tree, GitTree):
            source = f"{base_commit(task)} {_DEPTH}"
        elif isinstance(tree, ImageTree):
            source = f"{self.images.identity(task)} {task.image_path} {task_date(task).isoformat()}"
        else:
            source = f"{digest_tree(task, tree)} {task_date(task).isoformat()}"
        if isinstance(tree, FilesTree) or not tree.reverse_patch:
            return source
        patch = encode(task, "'reverse_patch'", tree.reverse_patch)
        return f"{source} {hashlib.sha256(patch).hexdigest()}"

    def write(self, task: Task, folder: Path) -> Checkout:
        """Writes the base tree to ``folder/tree``, and creates an empty ``folder/base.git``.

        Args:
            task: The task.
            folder: A folder without these entries.

        Raises:
            InvalidTaskError: The tree or commit does not exist, or a field cannot be used.
            TemplateError: A repository cannot be fetched.
        """
        tree, base_git = folder / "tree", folder / "base.git"
        tree.mkdir()
        base_git.mkdir()
        init_repository(tree)
        origin = task.tree
        date = self._fetch(task, origin, tree) if isinstance(origin, GitTree) else task_date(task)
        if isinstance(origin, GitTree) and not origin.reverse_patch:
            commit = task.base_commit
        else:
            with_ignored = self._write_files(task, tree, date)
            commit = commit_files(tree, date, with_ignored=with_ignored)
        return Checkout(tree, base_git, commit, date, list_base(tree))

    def _fetch(self, task: Task, origin: GitTree, tree: Path) -> datetime:
        """Writes the base commit's files, with history if no reverse patch changes them."""
        commit = base_commit(task)
        try:
            source = self.clones.source(task, origin, commit)
            depth = 1 if origin.reverse_patch else _DEPTH
            checkout_commit(tree, source, commit, depth, self.clones.timeout_s)
        except HostGitError as error:
            raise fetch_failure(task, origin, error) from error
        date = commit_date(tree)
        if origin.reverse_patch:
            shutil.rmtree(tree / ".git")
            init_repository(tree)
        return date

    def _write_files(self, task: Task, tree: Path, date: datetime) -> bool:
        """Writes files without history; returns whether the commit includes ignored files."""
        origin = task.tree
        if isinstance(origin, FilesTree):
            write_files(task, origin, tree)
            return True
        with_ignored = True
        if isinstance(origin, FolderTree):
            copy_files(source_folder(task, origin), tree)
            with_ignored = False
        elif isinstance(origin, ImageTree):
            copy = self.images.get(task, date)
            copy_files(copy.base, tree)
            with_ignored = copy.has_tracked_files
        reverse_apply(task, origin.reverse_patch, tree)
        return with_ignored


def seal(checkout: Checkout, layers: tuple[Path, ...], owner: tuple[int, int]) -> None:
    """Completes both git folders of a checkout; sets owner, modes and times of all files.

    Args:
        checkout: The checkout.
        layers: Layers below the tree, with files that install commands made; git ignores them.
        owner: The host uid and gid that must own the files.
    """
    tree = checkout.tree
    topmost = (
        path
        for path in united(layers)
        if not os.path.lexists(tree / path) and (tree / path).parent.is_dir()
    )
    artifacts = tuple(sorted(topmost))
    seal_repository(tree, exclude_patterns(artifacts))
    exclude = exclude_patterns((*artifacts, *checkout.base.gitlinks))
    write_base_git(checkout.base_git, tree, checkout.base, exclude)
    for folder in (tree, checkout.base_git):
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
