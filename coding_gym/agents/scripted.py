"""Agents without a model: functions that yield the actions of an episode."""

import base64
import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from coding_gym.action import Completion
from coding_gym.agents.player import LiveEpisode, Player
from coding_gym.calls import ToolCall
from coding_gym.envs.spaces import ActionText
from coding_gym.episode import Episode
from coding_gym.errors import InvalidArgumentError, InvalidTaskError
from coding_gym.sandbox.folder_cache import content_key
from coding_gym.tasks.rows import read_jsonl
from coding_gym.tools.schemas import SHELLS, KnownTools

Actions = Callable[[Episode, int], Iterator[str]]
"""A function from an episode and the attempt's seed to the actions of an agent."""

_NUM_RANDOM_ACTIONS = 10
_END_OF_DIFF = "END_OF_DIFF"


class ActionsPlayer(Player):
    """Plays the actions of an agent without a model, such as ``gold``.

    Args:
        name: The agent's name in records.
        actions: Yields the actions of an episode that was just started; the second argument is
            the seed of the attempt.
        digest: A digest of the actions, if any; a run cannot be resumed with another digest.
    """

    model = ""

    def __init__(self, name: str, actions: Actions, digest: str = "") -> None:
        self.name = name
        self.actions = actions
        self._digest = digest

    def describe(self) -> Mapping[str, str]:
        """Returns the digest of the actions."""
        return {"actions": self._digest} if self._digest else {}

    async def play(self, live: LiveEpisode) -> None:
        """Plays the actions until none is left or the episode ends."""
        await live.start()
        actions = iter(self.actions(live.episode, live.seed))
        while not live.ended:
            action = await live.in_thread(next, actions, None)
            if action is None:
                break
            await live.step(action)


def gold(episode: Episode, _seed: int = 0) -> Iterator[Completion]:
    """Yields the actions that apply the gold patch by a shell command, and submit.

    Raises:
        InvalidArgumentError: No tool of the toolset runs a shell command.
    """
    if episode.task.gold_patch:
        yield apply_diff(episode, episode.task.gold_patch)
    yield from submission(episode)


def submission(episode: Episode, _seed: int = 0) -> Iterator[Completion]:
    """Yields the action that submits, if the toolset has a tool for submissions.

    An episode whose agent ends without a submission is stopped and graded.
    """
    call = episode.toolset.submission
    if call.name in KnownTools(episode.toolset.schemas).names:
        yield Completion("", calls=[call])


def random_calls(episode: Episode, seed: int) -> Iterator[str]:
    """Samples ten valid calls from the action space and submits."""
    space = ActionText(episode.toolset.name, seed)
    for _ in range(_NUM_RANDOM_ACTIONS):
        yield space.sample()
    yield from submission(episode)


def read_script(path: Path) -> ActionsPlayer:
    """Returns the agent of a JSONL file whose lines are actions: texts, or calls as objects.

    Raises:
        InvalidArgumentError: The file cannot be read, or a line is not an action.
    """
    try:
        lines = list(read_jsonl(path))
    except InvalidTaskError as problem:
        raise InvalidArgumentError(f"the script {problem}") from None
    for location, action in lines:
        if not isinstance(action, str | dict | list):
            raise InvalidArgumentError(f"{location} must be a text or a tool call, got {action!r}")
    actions = [action if isinstance(action, str) else json.dumps(action) for _, action in lines]
    return ActionsPlayer("scripted", lambda *_: iter(actions), content_key(actions))


def shell(episode: Episode, command: str) -> Completion:
    """Returns the action that runs a shell command.

    Raises:
        InvalidArgumentError: No tool of the toolset runs a shell command.
    """
    tools = KnownTools(episode.toolset.schemas)
    tool, argument = tools.shell() or ("", "")
    if tool not in SHELLS:  # the argument "command" alone does not make a tool a shell
        raise InvalidArgumentError(
            f"the agent needs a tool that runs a shell command; the toolset "
            f"{episode.toolset.name!r} has {', '.join(tools.names)}; choose another toolset"
        )
    return Completion("", calls=[ToolCall(tool, {argument: command})])


def apply_diff(episode: Episode, diff: str) -> Completion:
    """Returns the action that applies a unified diff by a shell command; raises as `shell`."""
    lines = diff.split("\n")
    is_plain = diff.endswith("\n") and _END_OF_DIFF not in lines and not set(diff) & set("\r\0`")
    if is_plain and diff == diff.encode("utf-8", "replace").decode():
        document = f"<<'{_END_OF_DIFF}'\n{diff}{_END_OF_DIFF}"
        return shell(episode, f"git apply --whitespace=nowarn - {document}")
    encoded = base64.b64encode(diff.encode("utf-8", "surrogateescape")).decode()
    return shell(episode, f"echo {encoded} | base64 -d | git apply --whitespace=nowarn -")
