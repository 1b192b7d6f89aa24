"""nano-agent's own loop in our sandbox, graded by us.

    with NanoEnvironment("ledgerline-month-overlap") as env:
        Agent(model="openai/…", api_base="http://…/v1", env=env).run(env.task.problem_statement)
        print(env.grade().resolved)

It has the methods of nano-agent 5's ``Environment``, and imports nothing of it. What is mended
beside the isolation: new files are in the diff, paths are compared as paths, and files keep their
line ends and bytes.
"""

from typing import NamedTuple, Self

from coding_gym.adapters.harness import HarnessEnvironment
from coding_gym.errors import InvalidArgumentError, PatchError
from coding_gym.tools.files import TextFile, resolve

_OUTSIDE = "Path must be inside the repository"


class ShellResult(NamedTuple):
    """How a command ended, with the names that nano-agent reads.

    Attributes:
        stdout: Standard output and error, merged.
        returncode: The exit status; 124 after a timeout.
        timed_out: Whether it was killed at its time limit.
    """

    stdout: str
    returncode: int
    timed_out: bool = False


class NanoEnvironment(HarnessEnvironment):
    """What ``nano.Agent(env=…)`` takes: a sandbox with a task's base tree.

    The agent starts and stops it; `patch` and `grade` are about its last run. Every run starts from
    the base tree.

    Args:
        task: A task, its row, or the id of a bundled one.
        sandbox: As for ``CodingRepair-v0``.

    Raises:
        UnknownTaskError, InvalidTaskError, InvalidArgumentError, UnknownNameError: An argument
            cannot be used.
    """

    def __enter__(self) -> Self:
        return self  # the agent itself starts it

    def start(self) -> None:
        """Opens a fresh sandbox."""
        self.open()

    def stop(self) -> None:
        """Does nothing: the sandbox stays for `patch` and `grade`, until `close` or `start`."""

    def run_shell(self, cmd: str, timeout: float = 120) -> ShellResult:
        """Runs a command with ``bash -c``."""
        try:
            cmd.encode()
            result = self.run(cmd, timeout_s=timeout)
        except (InvalidArgumentError, UnicodeEncodeError, AttributeError) as error:
            return ShellResult(f"Execution failed: {error}", 1)
        if result.timed_out:
            return ShellResult(f"Command timed out after {timeout}s", 124, timed_out=True)
        return ShellResult(result.output, result.exit_code)

    def file_exists(self, path: str) -> bool:
        """Returns whether a path leads to something inside the workspace."""
        try:
            return self._place(path) is not None
        except TimeoutError:  # a tree of the policy's own making
            return False

    def read_file(self, path: str) -> str:
        """Returns a file's text, with line feeds for line ends.

        Raises:
            ValueError: The path leads outside the workspace.
            OSError: There is no such file, or it cannot be read.
        """
        with self.episode.access() as context:
            return TextFile.decode(context.sandbox.read_file(self._inside(path))).text

    def write_file(self, path: str, content: str) -> None:
        """Writes a file's text with the line ends and encoding that the file has.

        Raises:
            ValueError: The path leads outside the workspace.
            OSError: It cannot be written.
        """
        with self.episode.access() as context:
            place = self._inside(path)
            before = TextFile.decode(context.sandbox.read_file(place))
            context.sandbox.write_file(place, before.encode(content))

    def is_git_repo(self) -> bool:
        """Returns whether the workspace is a git checkout."""
        return self.run("test -e .git").ok

    def is_clean(self) -> bool:
        """Returns whether the working tree is as the base commit has it."""
        return not self.is_changed()

    def get_diff(self) -> str:
        """Returns the change so far, new files included; "" where it cannot be put into a patch."""
        try:
            return self.patch().text
        except PatchError:
            return ""

    def _place(self, path: str) -> str | None:
        with self.episode.access() as context:
            try:
                return resolve(context, path)
            except (FileNotFoundError, UnicodeEncodeError):
                return None

    def _inside(self, path: str) -> str:
        place = self._place(path)
        if place is None:
            raise ValueError(_OUTSIDE)
        return place
