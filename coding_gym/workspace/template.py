"""A task's checkout and environment, which any number of sandboxes can open."""

from dataclasses import dataclass, replace
from pathlib import Path

from coding_gym.sandbox.options import SandboxOptions
from coding_gym.sandbox.spec import SandboxSpec

BASE_GIT = "/opt/base.git"
ENVIRONMENT = "/opt/env"
IMAGE_BIN = "/opt/image/bin"
PYTEST_BIN = "/opt/pytest/bin"

# Entries of the second git folder that git does not use.
BASE_PATHS = "base-paths"
BASE_IGNORES = "base-ignores"


@dataclass(frozen=True, slots=True, kw_only=True)
class Template:
    """The checkout and environment of a task, from a `TemplateStore`.

    Attributes:
        key: Identifies tree, history, environment and owner; equal templates have the same key.
        spec: ``open_sandbox(spec)`` opens a clean checkout at ``/workspace``, on branch ``main``.
        base_commit: Sha of the commit of the checkout. For trees without history, this package
            makes the commit, whose sha is the same on every machine.
        plans: Folder of the cached grading plans; None if grading plans are not cached.
    """

    key: str
    spec: SandboxSpec
    base_commit: str
    plans: Path | None = None

    def with_options(self, options: SandboxOptions) -> "Template":
        """Returns the template whose sandboxes have these options."""
        return replace(self, spec=options.applied(self.spec))
