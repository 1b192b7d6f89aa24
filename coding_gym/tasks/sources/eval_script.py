"""Reading the shell script with which SWE-bench's harness evaluates one row.

Such a script activates an environment, installs the project, writes the hidden tests with
``git apply`` from a here-document, and runs them between two markers. Only what the row alone
knows is taken: how the project is installed, and what runs its tests. What is left out is the
scaffold around that, each command of it as a whole; everything else is kept.
"""

import re
from dataclasses import dataclass, field

from coding_gym.tasks.sources.shell_script import Command, UnreadableScriptError, read_commands

_MARKER = re.compile(r"(?::|echo) ['\"]?>>>>> (Start|End) Test Output['\"]?")
_HIDDEN_TESTS = re.compile(r"git apply [^\n;&|<>]*<<")
# What prepares a container, or shows its state to whoever reads the log.
_SCAFFOLD = re.compile(
    r"set [-+]\w+( pipefail)?|(source|\.) \S*conda\S*/activate( \w+)?|conda activate \w+|:( .*)?|"
    r"git (status|show|diff|-c \S+ diff)( [^;&|<>]*)?|git checkout [0-9a-f]{7,40}( [^;&|<>]*)?|"
    r"git config (--\w+ )*(safe\.directory|user\.\w+) \S+"
)
_ROOT = re.compile(r"cd /testbed/?")
# What a shell remembers for the commands that come after.
_STATE = re.compile(r"(export|unset|source|\.|cd|umask|ulimit|shopt|alias) [^;&|<>]*")


@dataclass(frozen=True, slots=True)
class EvalScript:
    """What an evaluation script does beside its scaffold.

    Attributes:
        install_commands: What comes before the hidden tests are written.
        test_command: What runs them, with the settings and builds that it needs.
    """

    install_commands: tuple[str, ...]
    test_command: str


@dataclass(slots=True)
class _State:
    """What a shell remembers."""

    settings: list[str] = field(default_factory=list)

    def takes(self, command: str) -> bool:
        """Takes note of a command that does nothing else; returns whether it was one."""
        if _ROOT.fullmatch(command):
            self.settings = [one for one in self.settings if not one.startswith("cd ")]
            return True
        if _STATE.fullmatch(command):
            self.settings.append(command)
            return True
        return False


def read_eval_script(text: str) -> EvalScript | None:
    """Returns what a script does; None where it has no command between its markers.

    Raises:
        UnreadableScriptError: It has a command that cannot be taken out of it.
    """
    state, installs = _State(), list[str]()
    builds, tests = list[str](), list[str]()
    place = installs
    for command in read_commands(text):
        if marker := _MARKER.fullmatch(command.text):
            if marker[1] == "End":
                break
            place = tests
        elif _HIDDEN_TESTS.match(command.text):
            place = builds
        elif _SCAFFOLD.fullmatch(command.text):
            continue
        elif place is not installs:
            place.append(command.text)
        elif not state.takes(_whole(command)):
            installs.append(" && ".join([*state.settings, command.text]))
    if not tests:
        return None
    return EvalScript(tuple(installs), "\n".join([*state.settings, *builds, *tests]))


def _whole(command: Command) -> str:
    """Returns the text of a command that another shell can run by itself."""
    if command.is_unfinished_block:
        excerpt = command.text.split("\n")[0][:40]
        raise UnreadableScriptError(
            command.line, f"{excerpt!r} is no whole command; write the block on one line"
        )
    return command.text
