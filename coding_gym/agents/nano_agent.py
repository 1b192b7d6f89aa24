"""nano-agent: its own loop as an agent of runs, and an episode as the environment of its agent.

    Agent(model="openai/…", api_base="http://…/v1", env=NanoEnvironment(episode)).run("…")

`NanoEnvironment` has the methods of nano-agent 5's ``Environment``. Besides the isolation it
differs from that project's own: new files are in the diff, paths are compared as paths, and files
keep their line ends and bytes.
"""

import re
from shlex import quote
from types import SimpleNamespace
from typing import Any

from coding_gym.agents.chat import Sampling
from coding_gym.agents.harness import LITELLM_MODEL, Harness, HarnessEnvironment
from coding_gym.agents.model_client import quiet_litellm
from coding_gym.episode import Episode
from coding_gym.errors import PatchError
from coding_gym.optional import import_optional
from coding_gym.tools.files import TextFile, is_inside
from coding_gym.trajectory import Message, StopReason

_OUTSIDE = "Path must be inside the repository"
# Messages of nano-agent's tools that report a failure, after a warning of a limit.
_FAILURE = re.compile(
    r"(?:(?:Token limit critical|Tokens low|\d+ tools left|Last tool call).*\n)?"
    r"(?:command failed|shell execution failed|shell tool missing|patch operation failed"
    r"|invalid `apply_patch`|search string not found|search ambiguous|file .* not found"
    rf"|Malformed tool arguments|unknown tool|{_OUTSIDE})"
)


class NanoEnvironment(HarnessEnvironment):
    """What ``nano.Agent(env=…)`` takes: the sandbox of a started episode.

    Args:
        episode: As for `HarnessEnvironment`.
    """

    def start(self) -> None:
        """Does nothing: the episode was started."""

    def stop(self) -> None:
        """Does nothing: the sandbox stays until the episode is graded or closed."""

    def run_shell(self, cmd: str, timeout: float = 120) -> SimpleNamespace:
        """Runs a command with ``bash -c``.

        Returns:
            ``stdout`` (with standard error), ``returncode`` (124 after a timeout), ``timed_out``.
        """
        result = self.run(cmd, timeout_s=timeout)
        if result.timed_out:
            message = f"Command timed out after {timeout}s"
            return SimpleNamespace(stdout=message, returncode=124, timed_out=True)
        return SimpleNamespace(stdout=result.output, returncode=result.exit_code, timed_out=False)

    def file_exists(self, path: str) -> bool:
        """Returns whether a path leads to something inside the workspace."""
        try:
            return self.run(f"test -e {quote(self._inside(path))}").ok
        except ValueError:
            return False

    def read_file(self, path: str) -> str:
        """Returns a file's text, with line feeds for line ends.

        Raises:
            ValueError: The path leads outside the workspace.
            OSError: There is no such file, or it cannot be read.
        """
        with self._episode.access() as context:
            return TextFile.decode(path, context.sandbox.read_file(self._inside(path))).text

    def write_file(self, path: str, content: str) -> None:
        """Writes a file's text with the line ends and encoding that the file has.

        Raises:
            ValueError: The path leads outside the workspace.
            OSError: It cannot be written.
        """
        with self._episode.access() as context:
            before = TextFile.decode(path, context.sandbox.read_file(self._inside(path)))
            context.sandbox.write_file(path, before.encode(content))

    def is_git_repo(self) -> bool:
        """Returns whether the workspace is a git checkout."""
        return self.run("test -e .git").ok

    def is_clean(self) -> bool:
        """Returns whether the working tree is as the base commit has it."""
        with self._episode.access() as context:
            return not context.is_changed()

    def get_diff(self) -> str:
        """Returns the change so far, new files included; "" where it cannot be put into a patch."""
        try:
            return self._episode.patch().text
        except PatchError:
            return ""

    def _inside(self, path: str) -> str:
        path.encode()
        with self._episode.access() as context:
            if "\0" in path or not is_inside(context, path):
                raise ValueError(_OUTSIDE)
        return path


def nano_agent() -> Harness:
    """Returns nano-agent as an agent of runs.

    Its tool, token and time limits are the episode's ``max_tool_calls``, ``max_tokens`` and
    ``max_seconds``, where these are set.

    Raises:
        MissingDependencyError: nano-agent is not installed.
    """
    quiet_litellm()
    agents = import_optional("nano.agent", "nano-agent==5.0.0 'litellm[mcp]'")

    def make(episode: Episode, client: Any, sampling: Sampling) -> Any:
        bounds = episode.bounds
        tool_limit = 30 if bounds.max_tool_calls is None else bounds.max_tool_calls
        if bounds.max_turns is not None:  # it stops when fewer than 0 are left
            tool_limit = min(tool_limit, bounds.max_turns - 1)
        agent = agents.Agent(
            LITELLM_MODEL,
            token_limit=bounds.max_tokens or 8192,
            tool_limit=tool_limit,
            time_limit=int(bounds.max_seconds) if bounds.max_seconds else None,
            response_limit=sampling.max_tokens or 4096,
            log=False,
            env=NanoEnvironment(episode),
        )
        agent.llm_kwargs["client"] = client
        return agent

    return Harness(package="nano-agent", make=make, stop_reason=_stop_reason, succeeded=_succeeded)


def _stop_reason(agent: Any) -> StopReason:
    if agent.messages[-1]["role"] == "assistant":
        return StopReason.NO_TOOL_CALL
    if agent.remaining_tool_calls < 0:
        return StopReason.MAX_TOOL_CALLS
    return StopReason.MAX_TIME if agent.remaining_time <= 0 else StopReason.MAX_TOKENS


def _succeeded(message: Message) -> bool:
    return _FAILURE.match(message["content"]) is None
