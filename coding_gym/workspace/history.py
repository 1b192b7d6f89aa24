"""The git folder of a checkout: only the base commit and its ancestors."""

from datetime import UTC, datetime
from pathlib import Path

from coding_gym.errors import InvalidTaskError
from coding_gym.task import Task
from coding_gym.workspace.host_git import GIT_TIMEOUT_S, run_git
from coding_gym.workspace.stamping import DEFAULT_DATE

_MESSAGE = "Initial commit"
# Within the range of dates that git accepts.
_FIRST_YEAR, _LAST_YEAR = 1974, 2098
_LAST_DATE = datetime(_LAST_YEAR, 12, 31, tzinfo=UTC)

# Overrides the tree's attributes, so that git writes files as the bytes in the repository.
ATTRIBUTES_OFF = (
    "* !text !eol !crlf !ident !filter !diff !merge !working-tree-encoding !whitespace !delta\n"
)

_CONFIG = """\
[core]
\trepositoryformatversion = 0
\tfilemode = true
\tbare = false
\tlogallrefupdates = true
[gc]
\tauto = 0
[maintenance]
\tauto = false
"""


def init_repository(tree: Path) -> None:
    """Creates an empty repository in ``tree``, on branch ``main``, that ignores git attributes."""
    run_git("init", "--quiet", "--template=", "--initial-branch=main", ".", cwd=tree)
    info = tree / ".git" / "info"
    info.mkdir(exist_ok=True)
    (info / "attributes").write_text(ATTRIBUTES_OFF)


def commit_files(tree: Path, date: datetime, *, with_ignored: bool) -> str:
    """Commits the files in ``tree``; returns the sha, which is the same on every machine.

    Args:
        tree: A repository from `init_repository` with files in it.
        date: The commit's date.
        with_ignored: Whether the commit includes files that the tree's ``.gitignore`` names; if
            not, these files are deleted.
    """
    run_git("add", "--all", *(["--force"] if with_ignored else []), ".", cwd=tree)
    if not with_ignored:
        run_git("clean", "-ffdxq", cwd=tree)
    stamp = f"{int(date.timestamp())} +0000"
    dates = {"GIT_AUTHOR_DATE": stamp, "GIT_COMMITTER_DATE": stamp}
    tree_sha = run_git("write-tree", cwd=tree)
    commit = run_git("commit-tree", tree_sha, "-m", _MESSAGE, cwd=tree, env=dates)
    run_git("update-ref", "refs/heads/main", commit, cwd=tree)
    run_git("repack", "-adnq", cwd=tree)
    return commit


def checkout_commit(
    tree: Path, source: str, commit: str, depth: int, timeout_s: float = GIT_TIMEOUT_S
) -> None:
    """Fetches a commit and its ancestors into ``tree``, and writes its files without conversion.

    Args:
        tree: An empty repository from `init_repository`.
        source: A repository on this machine that has the commit.
        commit: The full sha.
        depth: Number of generations, including the commit.
        timeout_s: Time limit of the fetch, in seconds; a FIFO in ``source`` can block git.
    """
    fetch = ["fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--no-recurse-submodules"]
    run_git(*fetch, f"--depth={depth}", "--", source, commit, cwd=tree, timeout_s=timeout_s)
    run_git("update-ref", "refs/heads/main", commit, cwd=tree)
    run_git("read-tree", commit, cwd=tree)
    run_git("checkout-index", "--all", "--force", "--quiet", cwd=tree)


def commit_date(tree: Path) -> datetime:
    """Returns the date of the commit at HEAD, limited to the end of 2098."""
    seconds = int(run_git("show", "--no-patch", "--format=%ct", "HEAD", cwd=tree))
    return datetime.fromtimestamp(min(seconds, _LAST_DATE.timestamp()), UTC)


def task_date(task: Task) -> datetime:
    """Returns the date of a task whose tree has no history.

    Raises:
        InvalidTaskError: ``created_at`` is not an ISO 8601 date of the years 1974 to 2098.
    """
    if not task.created_at:
        return DEFAULT_DATE
    try:
        date = datetime.fromisoformat(task.created_at)
    except ValueError:
        date = None
    if date is None or not _FIRST_YEAR <= date.year <= _LAST_YEAR:
        raise InvalidTaskError(
            f"task {task.task_id}: field 'created_at' must be an ISO 8601 date of the years "
            f"{_FIRST_YEAR} to {_LAST_YEAR}, got {task.created_at!r}"
        )
    return (date if date.tzinfo else date.replace(tzinfo=UTC)).replace(microsecond=0)


def seal_repository(tree: Path, exclude: bytes) -> None:
    """Writes fixed settings into ``.git``; removes the attributes of `init_repository`.

    Args:
        tree: The checkout.
        exclude: The patterns of ``info/exclude``.
    """
    git = tree / ".git"
    (git / "config").write_text(_CONFIG)
    (git / "info" / "attributes").unlink()
    (git / "info" / "exclude").write_bytes(exclude)
