"""Valid random calls of the toolset ``nano``, for random agents and spaces."""

from typing import TYPE_CHECKING

from coding_gym.calls import ToolCall

if TYPE_CHECKING:
    from numpy.random import Generator

# None of these reads a clock, an inode's number or an unsorted folder, so that a seeded random
# agent sees the same answers everywhere.
_COMMANDS = (
    "ls",
    "git status --short",
    "git log --oneline -n 3",
    "git ls-files | head -n 40",
    "find . -name '*.py' -not -path './.git/*' | sort | head -n 20",
    "grep -rn 'def ' --include='*.py' . | sort | head -n 20",
    "grep -rn 'TODO' . --include='*.py' | sort",
    "head -n 20 README.md",
    "cat no-such-file",
    "git ls-files '*.py' | head -n 1 | xargs sed -n '1,40p'",
    "echo 'a note' >> notes.txt",
    "true",
)
_PATCHES = (
    ("README.md", "the", "a"),
    ("README.md", "# ", "## "),
    ("notes.txt", "a note\n", "another note\n"),
    ("setup.py", "version", "release"),
)
_SUBMIT_PROBABILITY = 0.05
_PATCH_PROBABILITY = 0.25


def sample_call(rng: "Generator") -> ToolCall:
    """Draws a call: mostly ``shell``, a quarter ``apply_patch``, now and then ``submit``."""
    draw = rng.random()
    if draw < _SUBMIT_PROBABILITY:
        return ToolCall("submit")
    if draw < _SUBMIT_PROBABILITY + _PATCH_PROBABILITY:
        file, search, replace = _PATCHES[rng.integers(len(_PATCHES))]
        return ToolCall("apply_patch", {"search": search, "replace": replace, "file": file})
    return ToolCall("shell", {"cmd": _COMMANDS[rng.integers(len(_COMMANDS))]})
