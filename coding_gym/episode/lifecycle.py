"""How the sandbox of an episode is opened."""

from dataclasses import replace

from coding_gym.errors import InvalidArgumentError
from coding_gym.sandbox import Sandbox, Snapshot, open_sandbox
from coding_gym.sandbox.options import SandboxOptions
from coding_gym.workspace import Template, missing_programs


def open_clean(template: Template, options: SandboxOptions) -> tuple[Sandbox, Template]:
    """Opens a sandbox with the base tree.

    Args:
        template: The task's.
        options: How the sandbox differs from the template's spec.

    Returns:
        The sandbox, and the template with the options applied.

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
    return sandbox, wanted


def open_restored(template: Template, files: Snapshot) -> tuple[Sandbox, Template]:
    """Opens a sandbox with the files of a snapshot."""
    # By the backend's own name: "auto" may have chosen it.
    return open_sandbox(template.spec, backend=files.backend, snapshot=files), template
