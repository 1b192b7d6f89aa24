"""Random calls out of a toolset's examples, for random agents and spaces."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from coding_gym.calls import ToolCall

if TYPE_CHECKING:
    from numpy.random import Generator

# None of these reads a clock, an inode's number or an unsorted folder, so that a seeded random
# agent sees the same answers everywhere.
COMMANDS = (
    "ls",
    "git status --short",
    "git log --oneline -n 3",
    "git ls-files | head -n 40",
    "find . -name '*.py' -not -path './.git/*' | sort | head -n 20",
    "grep -rn 'def ' --include='*.py' . | sort | head -n 20",
    "head -n 20 README.md",
    "cat no-such-file",
    "echo 'a note' >> notes.txt",
    "true",
)
_SUBMIT_PROBABILITY = 0.05


def draw_call(rng: "Generator", examples: Sequence[ToolCall], submit: ToolCall) -> ToolCall:
    """Draws one of the examples, each as likely as any other, or now and then the submission."""
    if rng.random() < _SUBMIT_PROBABILITY:
        return submit
    return examples[int(rng.integers(len(examples)))]
