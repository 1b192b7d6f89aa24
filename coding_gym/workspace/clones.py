"""Finding a task's commits: in a clone on this machine, or in a mirror of a URL's repository."""

import hashlib
import logging
import re
from pathlib import Path

from filelock import FileLock

from coding_gym.addresses import find_repository, is_url, without_password
from coding_gym.errors import CodingGymError, InvalidTaskError, TemplateError
from coding_gym.task import GitTree, Task
from coding_gym.workspace.host_git import HostGit, HostGitError

_log = logging.getLogger(__name__)
_SHA = re.compile(r"[0-9a-f]{40}")


class Clones:
    """Repositories that tasks' commits are fetched from.

    Args:
        git: Git on the host.
        folder: Where the mirrors lie.
    """

    def __init__(self, git: HostGit, folder: Path) -> None:
        self._git = git
        self._folder = folder

    def source(self, task: Task, tree: GitTree, commit: str) -> str:
        """Returns a repository on this machine to fetch a commit from.

        Whether a clone of the user's has the commit is not asked here: it may be hostile, and only
        fetching from it is safe.

        Raises:
            InvalidTaskError: The repository does not exist.
            TemplateError: The URL cannot be fetched.
        """
        if is_url(tree.repository):
            return str(self._mirror(task, tree, commit))
        return str(_local(task, tree))

    def _mirror(self, task: Task, tree: GitTree, commit: str) -> Path:
        url = tree.repository
        mirror = self._folder / f"{hashlib.sha256(url.encode()).hexdigest()[:16]}.git"
        self._folder.mkdir(parents=True, exist_ok=True)
        with FileLock(f"{mirror}.lock"):
            if not (mirror / "HEAD").exists():
                self._git.run(
                    "init", "--quiet", "--bare", "--template=", str(mirror), cwd=Path("/")
                )
            if self._has(mirror, commit):
                return mirror
            _log.info("fetching %s", without_password(url))
            fetch = ["fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--force"]
            try:
                self._git.run(
                    *fetch, "--", url, "+refs/heads/*:refs/heads/*", cwd=mirror, network=True
                )
            except HostGitError as error:
                raise TemplateError(
                    f"task {task.task_id}: cannot fetch {without_password(url)}: {error}; clone "
                    "it yourself and give the clone's path as 'repository'"
                ) from error
            if not self._has(mirror, commit):
                self._fetch_commit(mirror, url, commit)
        return mirror

    def _fetch_commit(self, mirror: Path, url: str, commit: str) -> None:
        """Fetches a commit that no branch leads to, such as one of a pull request."""
        keep = f"{commit}:refs/commits/{commit}"
        try:
            self._git.run(
                "fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--", url, keep,
                cwd=mirror, network=True,
            )  # fmt: skip
        except HostGitError as error:
            _log.info("%s has no commit %s: %s", without_password(url), commit, error)

    def _has(self, place: Path, commit: str) -> bool:
        try:
            self._git.run(
                "--git-dir", str(place), "cat-file", "-e", f"{commit}^{{commit}}", cwd=Path("/")
            )
        except HostGitError:
            return False
        return True


def _local(task: Task, tree: GitTree) -> Path:
    """Returns the folder of a repository on this machine."""
    found = find_repository(tree.repository)
    if found is None:
        raise InvalidTaskError(
            f"task {task.task_id}: field 'repository' names {tree.repository!r}, which is not a "
            "git repository on this machine; clone it there, or give a URL"
        )
    return found


def named_commit(task: Task, field: str) -> str:
    """Returns the commit that a field of a task names.

    Raises:
        InvalidTaskError: It is not a full sha. Names and short shas are refused because they mean
            another commit tomorrow.
    """
    commit = str(getattr(task, field))
    if not _SHA.fullmatch(commit):
        raise InvalidTaskError(
            f"task {task.task_id}: field {field!r} must be a full sha of 40 hexadecimal digits, "
            f"got {commit!r}; git rev-parse gives it"
        )
    return commit


def fetch_failure(task: Task, tree: GitTree, field: str, error: HostGitError) -> CodingGymError:
    """Returns what to raise where the commit that a field names could not be fetched."""
    commit = getattr(task, field)
    if "not our ref" in str(error) or "unadvertised object" in str(error):
        return InvalidTaskError(
            f"task {task.task_id}: field {field!r} names {commit}, which "
            f"{without_password(tree.repository)} does not have; fetch it there, or mend the row"
        )
    return TemplateError(
        f"task {task.task_id}: cannot take {commit} from {without_password(tree.repository)}: "
        f"{error}"
    )
