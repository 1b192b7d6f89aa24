"""Actions of agents without a model: calls of the tools that an episode has."""

import base64
from collections.abc import Iterator

from coding_gym.action import Completion
from coding_gym.calls import ToolCall
from coding_gym.episode import Episode
from coding_gym.errors import InvalidArgumentError
from coding_gym.tools.schemas import SHELLS, KnownTools

_END_OF_DIFF = "END_OF_DIFF"


def shell(episode: Episode, command: str) -> Completion:
    """Returns the action that runs a shell command.

    Raises:
        InvalidArgumentError: No tool of the toolset runs a shell command.
    """
    tools = KnownTools(episode.toolset.schemas)
    tool, argument = tools.shell() or ("", "")
    if tool not in SHELLS:  # other tools have an argument "command" too
        raise InvalidArgumentError(
            f"the agent needs a tool that runs a shell command; the toolset "
            f"{episode.toolset.name!r} has {', '.join(tools.names)}; choose another toolset"
        )
    return Completion("", calls=[ToolCall(tool, {argument: command})])


def applying(episode: Episode, diff: str) -> Completion:
    """Returns the action that applies a unified diff by a shell command; errors of `shell`."""
    return shell(episode, _apply_command(diff))


def submission(episode: Episode) -> Iterator[Completion]:
    """Yields the action that submits, if the toolset has a tool for it.

    An episode whose agent ends without a submission is stopped and graded.
    """
    call = episode.toolset.submission
    if call.name in KnownTools(episode.toolset.schemas).names:
        yield Completion("", calls=[call])


def gold(episode: Episode) -> Iterator[Completion]:
    """Yields the actions that apply the gold patch by a shell command, and submit.

    Raises:
        InvalidArgumentError: No tool of the toolset runs a shell command.
    """
    if episode.task.gold_patch:
        yield applying(episode, episode.task.gold_patch)
    yield from submission(episode)


def _apply_command(diff: str) -> str:
    """Returns the command that applies a diff; a here-document if the diff is plain UTF-8."""
    lines = diff.split("\n")
    is_plain = diff.endswith("\n") and _END_OF_DIFF not in lines and not set(diff) & set("\r\0`")
    if is_plain and diff == diff.encode("utf-8", "replace").decode():
        return f"git apply --whitespace=nowarn - <<'{_END_OF_DIFF}'\n{diff}{_END_OF_DIFF}"
    encoded = base64.b64encode(diff.encode("utf-8", "surrogateescape")).decode()
    return f"echo {encoded} | base64 -d | git apply --whitespace=nowarn -"
