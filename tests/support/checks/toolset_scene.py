"""Where the toolset checks play: a sandbox with a small repository, and a secret outside of it."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from checks.claims import expect, output
from coding_gym.calls import ToolCall, ToolResult
from coding_gym.sandbox import SandboxSpec, default_interpreter, open_sandbox
from coding_gym.sandbox.protocol import Sandbox
from coding_gym.tools import Toolset

MAX_ANSWER_CHARS = 64_000
SECRET = "the secret outside"  # noqa: S105 - of nobody
OUTSIDE = "/tmp/outside"
_FILES = {
    "README.md": "# A title\n\nThe text of the project.\n",
    "area.py": 'def area(width, height):\n    """Returns an area."""\n    return width + height\n',
    "tests/test_area.py": "from area import area\n\n\ndef test():\n    assert area(2, 3) == 6\n",
}


@dataclass
class ToolScene:
    """A `coding_gym.tools.ToolContext` without an episode around it.

    Attributes:
        sandbox: Where calls work.
        command_timeout_s: Seconds that a command may take.
        changed: What `is_changed` says.
        state: What the toolset keeps.
    """

    sandbox: Sandbox
    command_timeout_s: float = 30.0
    changed: bool = False
    state: dict[str, Any] = field(default_factory=dict)

    def is_changed(self) -> bool:
        """Returns whether the working tree is said to differ from its base."""
        return self.changed

    def outside(self) -> str:
        """Returns what is outside of the workspace, as a text that changes with it."""
        command = f"cd {OUTSIDE} && find . -exec stat -c '%n %s %a %Y' {{}} + | sort && cat secret"
        return output(self.sandbox, command)


@contextmanager
def tool_scene() -> Iterator[ToolScene]:
    """Gives a scene; ``link`` and ``folder`` in its repository lead outside."""
    with open_sandbox(SandboxSpec(python=default_interpreter())) as sandbox:
        for path, text in _FILES.items():
            sandbox.write_file(path, text.encode())
        sandbox.write_file(f"{OUTSIDE}/secret", SECRET.encode())
        output(sandbox, f"ln -s {OUTSIDE}/secret link; ln -s {OUTSIDE} folder; printf '\\0' > data")
        yield ToolScene(sandbox)


def result_of(toolset: Toolset, call: ToolCall, scene: ToolScene) -> ToolResult:
    """Returns the answer to a call, which must be one.

    Raises:
        AssertionError: It is none that an episode can take.
    """
    result = toolset.execute(call, scene)
    what = f"{toolset.name} answering {call!r:.200}"
    expect(f"{what}: type", type(result), ToolResult)
    expect(f"{what}: call_id", result.call_id, call.call_id)
    expect(f"{what}: type of content", type(result.content), str)
    if not result.content or len(result.content) > MAX_ANSWER_CHARS:
        raise AssertionError(
            f"{what}: wanted 1 to {MAX_ANSWER_CHARS} characters, got {len(result.content)}"
        )
    result.content.encode()  # no lone surrogates, which no tokenizer takes
    return result
