"""A patch that anybody may have written, as git writes it."""

from coding_gym.patch import Patch
from coding_gym.sandbox import open_sandbox
from coding_gym.sandbox.spec import SandboxSpec
from coding_gym.workspace import Template, apply_patch, diff


def retake(patch: Patch, template: Template, spec: SandboxSpec, *, backend: str) -> Patch:
    """Returns a patch's change to the base tree, as a git that no policy could touch describes it.

    A text may read as a change of one file and be applied as one of another, or hold files that no
    patch has, such as byte code. A model may write such a text, and in an image, where a policy can
    replace git, that of an episode may be one too.

    Args:
        patch: The patch.
        template: What it is against.
        spec: What to open the clean sandbox with.
        backend: Name of the sandbox backend.

    Raises:
        PatchError: It cannot be read or does not apply, or its change is too large.
        SandboxError: The sandbox failed.
    """
    if not patch.files:  # which whoever reads the policy's own text later must be able to tell
        return patch
    with open_sandbox(spec, backend=backend) as sandbox:
        apply_patch(sandbox, patch)
        return diff(sandbox, template)
