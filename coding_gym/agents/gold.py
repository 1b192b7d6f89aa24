"""The agent ``gold``: it repairs by the reference patch, in turns as a model would take them."""

from collections.abc import Iterator

from coding_gym.agents.tool_use import ToolUse
from coding_gym.episode import Episode
from coding_gym.errors import PatchError
from coding_gym.patch import FileChange, Hunk, Patch


def gold(episode: Episode, _: int) -> Iterator[str]:
    """Reads each place that the gold patch changes, edits it, and submits.

    In toolsets that cannot replace a text, and where such an edit fails since the text occurs
    twice, one action applies the patch.
    """
    tools = ToolUse.of(episode)
    diff = episode.task.gold_patch
    for action in _turns(tools, diff):
        yield action
        if not all(result.ok for result in episode.turns[-1].results):
            yield tools.applying(diff, "gold", anew=True)
            break
    yield from tools.submission()


def _turns(tools: ToolUse, diff: str) -> Iterator[str]:
    """Yields a read and an edit for each hunk, or all reads and then one action for all changes."""
    try:
        changes = Patch(diff).files
        hunks = [(change.path, hunk) for change in changes for hunk in change.hunks()]
    except PatchError:  # in a form that only git reads
        hunks, changes = [], ()
    hunks = hunks if all(map(_is_edit, changes)) else []
    edits = [tools.edit(path, *_texts(hunk)) for path, hunk in hunks]
    for (path, hunk), edit in zip(hunks, edits, strict=True):
        first = hunk.old_start if edit is None else hunk.new_start  # the edits before have moved it
        num_lines = sum(line[0] in " -" for line in hunk.body)
        read = tools.read(path, first, first + max(num_lines, 1) - 1)
        yield from (action for action in (read, edit) if action is not None)
    if not edits or None in edits:
        yield tools.applying(diff, "gold")


def _is_edit(change: FileChange) -> bool:
    """Whether a change only edits lines of a file that stays where it is."""
    return change.old_path == change.new_path is not None and not change.is_binary


def _texts(hunk: Hunk) -> tuple[str, str]:
    """Returns the lines of a hunk before and after the change."""
    lines = list(hunk.lines())
    old, new = ("".join(line[1:] for line in lines if line[0] in signs) for signs in (" -", " +"))
    return old, new
