"""One moment of an episode, between two turns."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from coding_gym.episode.outcome import Outcome
from coding_gym.episode.usage import Usage
from coding_gym.sandbox import Snapshot
from coding_gym.task import Task
from coding_gym.trajectory import Message, Turn
from coding_gym.workspace import Template


@dataclass(frozen=True, slots=True, kw_only=True)
class EpisodeSnapshot:
    """All that a running episode is at one moment; `Episode.restore` goes on from it.

    It holds no sandbox and restores as often as one likes. Nothing of it may be changed.

    Attributes:
        task: The bug.
        template: What the sandbox was opened from.
        files: What the sandbox had changed.
        messages: The chat so far.
        turns: The turns so far.
        usage: What they have used of the limits.
        outcome: What the policy got last.
        tool_state: What the toolset kept.
    """

    task: Task
    template: Template = field(repr=False)
    files: Snapshot = field(repr=False)
    messages: tuple[Message, ...] = field(repr=False)
    turns: tuple[Turn, ...] = field(repr=False)
    usage: Usage
    outcome: Outcome = field(repr=False)
    tool_state: Mapping[str, Any] = field(default_factory=dict, repr=False)
