"""Searches for files in which a policy could read the repair."""

import posixpath
import re
from collections.abc import Collection, Iterable, Iterator

from coding_gym.errors import SandboxError
from coding_gym.patch import Patch
from coding_gym.sandbox import Sandbox, open_sandbox
from coding_gym.sandbox.spec import WORKDIR
from coding_gym.task import Task
from coding_gym.workspace import Template

# Lines like `else:` and repairs like `return None` occur in many files, so neither is searched.
_MIN_LINE_CHARS, _MIN_CHARS = 8, 24
# A repair of fewer characters can be a common idiom; a leak must then contain context lines too.
_ENOUGH_CHARS, _MAX_CONTEXT_LINES = 80, 4
_MAX_LINES = 64
_MAX_NAMED = 20
_TIMEOUT_S = 120.0
_NOT_FOUND = 1
_PATTERNS = "/tmp/added-lines"  # noqa: S108 - in the sandbox
_GREP = f"git grep -I -l -F --all-match -f {_PATTERNS}"
# Makes a git tree of all blobs, in the order in which git stores them, and searches that tree: each
# blob is searched once, even if many commits contain it.
_BLOBS = "/tmp/blobs"  # noqa: S108 - in the sandbox
_ENTRIES = r"""'$1 == "blob" { printf "100644 blob %s\t%09d-%s\n", $2, NR, $2 }'"""
_GREP_BLOBS = (
    "tree=$(git cat-file --batch-all-objects --unordered "
    f"--batch-check='%(objecttype) %(objectname)' | awk {_ENTRIES} | git mktree) && "
    f"{_GREP} $tree | sed 's/.*-//'"
)
_COMMITS = "--all --reflog HEAD"
_WORD = re.compile(r"\w")


def find_leaks(task: Task, template: Template, *, backend: str = "auto") -> tuple[str, ...]:
    """Returns the files in which a policy can read all lines that the gold patch adds.

    The search covers the workspace, all commits of its repository, and the other mounts of the
    template, such as installed packages. The search ignores short lines, lines of the base, and the
    repaired files. If the added lines have fewer than 24 characters together, nothing is searched;
    if they have fewer than 80, a leak must also contain lines of the patch's context.

    Args:
        task: The task.
        template: The template of the task.
        backend: Name of the sandbox backend.

    Returns:
        At most 20 paths; files of commits as ``COMMIT:PATH``.

    Raises:
        SandboxError: The search failed or took longer than two minutes.
    """
    with open_sandbox(template.spec, backend=backend) as sandbox:
        lines = _searched_lines(Patch(task.gold_patch), sandbox)
        if not lines:
            return ()
        sandbox.write_file(_PATTERNS, "".join(f"{line}\n" for line in lines).encode())
        changed_paths = {change.old_path for change in Patch(task.gold_patch).files}
        hits = _search(sandbox, f"{_GREP} --no-index", WORKDIR)
        leaks = [hit for hit in hits if hit not in changed_paths]
        for mount in template.spec.mounts:
            folder = mount.target if mount.source.is_dir() else posixpath.dirname(mount.target)
            folder_hits = _search(sandbox, f"{_GREP} --no-index", folder)
            leaks += [f"{folder}/{hit}" for hit in folder_hits]
        leaks += _in_history(sandbox, {*hits})
    return tuple(dict.fromkeys(leaks))[:_MAX_NAMED]


def _in_history(sandbox: Sandbox, hits: Collection[str]) -> Iterator[str]:
    """Yields files of commits, as ``COMMIT:PATH``, except for paths with a hit in the tree."""
    blobs = _search(sandbox, _GREP_BLOBS, WORKDIR)
    if not blobs:
        return
    sandbox.write_file(_BLOBS, "".join(f"{blob}\n" for blob in blobs).encode())
    listing = _search(sandbox, f"git rev-list --objects {_COMMITS} | grep -F -f {_BLOBS}", WORKDIR)
    paths = dict(line.split(" ", 1) for line in listing)
    leaks = [blob for blob in blobs if paths.get(blob) not in hits]
    for blob in leaks[:_MAX_NAMED]:
        log = f"git log --find-object={blob} --format=%H {_COMMITS} | tail -n 1"
        commit = "".join(_search(sandbox, log, WORKDIR))  # the oldest, which added the blob
        yield f"{commit}:{paths[blob]}" if commit and blob in paths else blob


def _searched_lines(gold: Patch, sandbox: Sandbox) -> list[str]:
    """Returns the longest added lines, which identify the repair; [] if they are too short."""
    added_lines: set[str] = set()
    context: set[str] = set()
    for change in gold.files:
        base_lines = _lines_at_base(sandbox, change.old_path)
        added_lines |= set(_prefixed_lines(change.text, "+")) - base_lines
        context |= set(_prefixed_lines(change.text, " "))
    lines = _longest_lines(added_lines, _MAX_LINES)
    num_chars = sum(map(len, lines))
    if num_chars < _MIN_CHARS:
        return []
    num_context_lines = 0 if num_chars >= _ENOUGH_CHARS else _MAX_CONTEXT_LINES
    return lines + _longest_lines(context, num_context_lines)


def _longest_lines(lines: Iterable[str], max_lines: int) -> list[str]:
    return sorted(lines, key=lambda line: (-len(line), line))[:max_lines]


def _prefixed_lines(diff: str, prefix: str) -> Iterator[str]:
    """Yields the lines of a diff that begin with ``prefix`` and are long enough to search for."""
    for line in diff.splitlines():
        text = line[1:].strip()
        has_prefix = line.startswith(prefix) and not line.startswith("+++ ")
        if has_prefix and len(text) >= _MIN_LINE_CHARS and _WORD.search(text):
            yield text


def _lines_at_base(sandbox: Sandbox, path: str | None) -> set[str]:
    if path is None:
        return set()
    try:
        text = sandbox.read_file(path).decode("utf-8", "surrogateescape")
    except OSError:  # the path is a link or does not exist
        return set()
    return {line.strip() for line in text.splitlines()}


def _search(sandbox: Sandbox, command: str, folder: str) -> list[str]:
    result = sandbox.run(f"set -o pipefail; {command}", cwd=folder, timeout_s=_TIMEOUT_S)
    if result.exit_code not in (0, _NOT_FOUND):
        message = "it took too long" if result.timed_out else result.output.strip()[-200:]
        raise SandboxError(
            f"cannot search for the gold patch in {folder}: {message}; --no-leaks "
            "(looks_for_leaks=False) skips this search"
        )
    return result.output.splitlines()
