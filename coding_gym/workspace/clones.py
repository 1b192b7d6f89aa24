"""Finds a task's commits in a clone on this machine, or in a cached mirror of a URL."""

import hashlib
import logging
import re
from dataclasses import dataclass
from pathlib import Path

from coding_gym.addresses import find_repository, is_url, without_password
from coding_gym.errors import CodingGymError, InvalidTaskError, TemplateError
from coding_gym.sandbox.folder_cache import FolderCache, key_lock
from coding_gym.task import GitTree, Task
from coding_gym.workspace.host_git import HostGitError, run_git

_log = logging.getLogger(__name__)
_SHA = re.compile(r"[0-9a-f]{40}")
# An environment is built for a copy of the task that has the second field as its base commit.
_FIELDS = "field 'base_commit' or 'environment_setup_commit'"


@dataclass(frozen=True, slots=True)
class Clones:
    """Finds the repositories that tasks' commits are fetched from.

    Attributes:
        mirrors: The cache of the mirrors.
        timeout_s: Time limit of one fetch, in seconds.
    """

    mirrors: FolderCache
    timeout_s: float

    def source(self, task: Task, tree: GitTree, commit: str) -> str:
        """Returns a repository on this machine to fetch a commit from.

        A local repository can be hostile: a fetch from it is safe, but a git command in it is not,
        so the repository is not searched for the commit.

        Raises:
            InvalidTaskError: The repository does not exist.
            HostGitError: The URL cannot be fetched, or its repository lacks the commit.
        """
        if is_url(tree.repository):
            return str(self._mirror(tree.repository, commit))
        repository = find_repository(tree.repository)
        if repository is None:
            raise InvalidTaskError(
                f"task {task.task_id}: field 'repository' names {tree.repository!r}, which is not "
                "a git repository on this machine; clone one there, or set the field to a URL"
            )
        return str(repository)

    def _mirror(self, url: str, commit: str) -> Path:
        name = f"{hashlib.sha256(url.encode()).hexdigest()[:16]}.git"
        mirror = self.mirrors.get(name, _init_mirror)
        with key_lock(mirror.parent, name):
            # The second ref fetches a commit that is on no branch, such as a pull request's.
            for ref in ("+refs/heads/*:refs/heads/*", f"{commit}:refs/commits/{commit}"):
                if not _has_commit(mirror, commit):
                    self._fetch(mirror, url, ref)
        return mirror

    def _fetch(self, mirror: Path, url: str, ref: str) -> None:
        _log.info("fetching %s", without_password(url))
        # With these files of a killed git, every later fetch would fail.
        for path in (*mirror.rglob("*.lock"), *mirror.glob("objects/pack/tmp_*")):
            path.unlink()
        # --prune, because a removed branch `a` prevents a new branch `a/b`. The commits are kept.
        fetch = ["fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--force", "--prune"]
        run_git(*fetch, "--", url, ref, cwd=mirror, network=True, timeout_s=self.timeout_s)


def _init_mirror(folder: Path) -> None:
    run_git("init", "--quiet", "--bare", "--template=", ".", cwd=folder)


def _has_commit(mirror: Path, commit: str) -> bool:
    try:
        run_git("--git-dir", str(mirror), "cat-file", "-e", f"{commit}^{{commit}}", cwd=Path("/"))
    except HostGitError:
        return False
    return True


def base_commit(task: Task) -> str:
    """Returns the full sha of a task's base commit.

    Raises:
        InvalidTaskError: ``base_commit`` is not a full sha. Branch names and short shas are
            refused, because they can name another commit later.
    """
    if not _SHA.fullmatch(task.base_commit):
        raise InvalidTaskError(
            f"task {task.task_id}: {_FIELDS} must be a full sha of 40 hexadecimal digits, got "
            f"{task.base_commit!r}; use the full sha, or resolve short shas in a folder of local "
            "clones: --repositories DIR"
        )
    return task.base_commit


def fetch_failure(task: Task, tree: GitTree, error: HostGitError) -> CodingGymError:
    """Returns the error for a failed fetch of the base commit."""
    commit = task.base_commit
    if "not our ref" in str(error) or "unadvertised object" in str(error):
        return InvalidTaskError(
            f"task {task.task_id}: {_FIELDS} names {commit}, which "
            f"{without_password(tree.repository)} lacks; fetch the commit there, or correct the "
            "task's row"
        )
    remedy = ""
    if isinstance(error.__cause__, TimeoutError):
        remedy = "; increase build_timeout_s"
    elif is_url(tree.repository):
        remedy = "; clone the repository and set 'repository' to the path of the clone"
    elif "index-pack" in str(error) or "early EOF" in str(error):
        remedy = f"; fetch the missing objects: git -C {tree.repository} fetch --refetch"
    return TemplateError(
        without_password(
            f"task {task.task_id}: cannot fetch {commit} from {tree.repository}: {error}{remedy}"
        )
    )
