"""The sandbox of an episode, and how it is opened."""

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass, field, replace
from typing import Any

from coding_gym.errors import InvalidArgumentError, PatchError
from coding_gym.sandbox import Sandbox, Snapshot, open_sandbox
from coding_gym.sandbox.options import SandboxOptions
from coding_gym.workspace import Template, is_changed, missing_programs


@dataclass(frozen=True, slots=True)
class Context:
    """The open sandbox of one episode; a `coding_gym.tools.ToolContext`.

    Attributes:
        sandbox: Where tools work.
        template: The template of the sandbox.
        command_timeout_s: Seconds that one tool call may take.
        state: The state of the toolset in this episode, JSON values.
    """

    sandbox: Sandbox
    template: Template
    command_timeout_s: float
    state: dict[str, Any] = field(default_factory=dict)

    def is_changed(self) -> bool:
        """Whether the tree differs from the base."""
        try:
            return is_changed(self.sandbox, self.template)
        except PatchError:  # only a changed tree can be too much for a patch
            return True


def open_clean(template: Template, options: SandboxOptions, timeout_s: float) -> Context:
    """Opens a sandbox with the base tree.

    Args:
        template: The task's.
        options: How the sandbox differs from what the template asks for.
        timeout_s: Seconds that one tool call may take.

    Raises:
        InvalidArgumentError: The options name an image that lacks what this package runs in it.
    """
    options.warn_of_unkept()
    wanted = replace(template, spec=options.applied(template.spec))
    sandbox = open_sandbox(wanted.spec, backend=options.name)
    try:
        if options.image and (missing := missing_programs(sandbox)):
            raise InvalidArgumentError(f"the image {options.image!r} {missing}")
    except BaseException:
        sandbox.close()
        raise
    return Context(sandbox, wanted, timeout_s)


def open_restored(
    template: Template, files: Snapshot, state: Mapping[str, Any], timeout_s: float
) -> Context:
    """Opens a sandbox with the files of a snapshot."""
    # By the backend's own name: "auto" may have chosen it.
    sandbox = open_sandbox(template.spec, backend=files.backend, snapshot=files)
    return Context(sandbox, template, timeout_s, deepcopy(dict(state)))
