"""The patch between a template's base tree and a sandbox's working tree.

Git runs inside the sandbox, with the template's second, read-only git folder and a fresh index.
Changes of a policy to the checkout's ``.git``, to git's settings, or to attributes and ignore files
in the tree do not affect the patch. The base's ``.gitignore`` files exclude new files.

In an image, a policy can replace git and so forge the text of the patch. The policy gains nothing
by this: it could write the same files, and grading applies the patch in a clean sandbox.
"""

import base64
import os
import secrets

from coding_gym.calls import ExecResult
from coding_gym.errors import MissingDependencyError, PatchError
from coding_gym.patch import Patch
from coding_gym.program_output import DISK_FULL, error_line, last_line
from coding_gym.sandbox.inside.fixed import NO_PROGRAM_CODE
from coding_gym.sandbox.protocol import Sandbox
from coding_gym.sandbox.spec import TMP
from coding_gym.workspace.scripts import run_base_git
from coding_gym.workspace.template import Template

MAX_PATCH_BYTES = 16 << 20
TIMEOUT_S = 120.0
_MAX_NAMES_BYTES = 1 << 16
_RESULT, _TOO_LARGE = "result:", 41  # of base_git.sh
_NOT_APPLIED, _NOT_COMPUTED = "the patch does not apply", "cannot compute the patch"
_NO_DIFF = "No valid patches in input"
_DISK_FULL = (*map(os.strerror, DISK_FULL), "unknown write failure on standard output")  # git's


def diff(sandbox: Sandbox, template: Template) -> Patch:
    """Returns the changes of the working tree since the base, as a git diff.

    The patch contains new, deleted, renamed and binary files and mode changes. The patch excludes
    submodules, and new files that the base's ``.gitignore`` names, that install commands made, or
    that are caches of Python tools and editors (``__pycache__``, ``.pytest_cache``, ``.x.swp`` …).
    It also excludes the new paths in `Patch.excluded`: files larger than `MAX_PATCH_BYTES`, core
    dumps, and folders of virtual environments and cloned repositories. The sandbox is unchanged.

    Args:
        sandbox: A sandbox opened from ``template.spec``.
        template: The template.

    Raises:
        PatchError: A changed file of the base, or the patch, is larger than `MAX_PATCH_BYTES`; git
            takes too long; the sandbox's disk or memory is full; or the task's image lacks a
            required program, which a policy can remove.
        MissingDependencyError: git, findutils or patch is not installed on this machine.
        SandboxError: The sandbox is closed or died.
    """
    result, names = _run_comparison(sandbox, template, "diff", _NOT_COMPUTED)
    return Patch(_decode(result), excluded=tuple(_decode(names).split("\0")[:-1]))


def normalize(sandbox: Sandbox, template: Template, patch: Patch) -> Patch:
    """Applies a patch's text to the base and returns the change in the form of `diff`.

    The text is applied as by SWE-bench's harness (``run_evaluation.py``, ``GIT_APPLY_CMDS``): by
    git, else by ``patch --fuzz=5``, from a clean tree each time. Unlike in SWE-bench, a hunk that
    seems to be applied already is not reversed. New files that install commands made are not part
    of the change. The program ``patch`` chooses the files that it changes, so only the returned
    patch, not the text, shows these files.

    Args:
        sandbox: A sandbox opened from ``template.spec``, with a clean tree.
        template: The template.
        patch: The patch.

    Raises:
        PatchError: The patch cannot be read or does not apply, or its change is too large.
        MissingDependencyError: As `diff`.
        SandboxError: The sandbox is closed or died.
    """
    result, _ = _run_comparison(sandbox, template, "normalize", _NOT_APPLIED, _encode(patch))
    return Patch(_decode(result))


def apply_patch(sandbox: Sandbox, patch: Patch) -> None:
    """Applies a patch to the working tree completely or not at all.

    If git is killed at the time or memory limit, a part of the changes can remain.

    Args:
        sandbox: A sandbox opened from a template.
        patch: The patch; an empty patch changes nothing.

    Raises:
        PatchError: The patch does not apply, names a path outside the tree or inside ``.git``, or
            cannot be read.
        MissingDependencyError: As `diff`.
        SandboxError: The sandbox is closed or died.
    """
    if patch.is_empty:
        return
    result = run_base_git(sandbox, "apply", timeout_s=TIMEOUT_S, stdin=_encode(patch))
    if not result.ok:
        raise _failure(result, _NOT_APPLIED)


def _encode(patch: Patch) -> bytes:
    text = patch.text if patch.text.endswith("\n") else f"{patch.text}\n"
    try:
        data = text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError as error:
        raise PatchError(f"{_NOT_APPLIED}: its text is not Unicode: {error}") from error
    if len(data) > MAX_PATCH_BYTES:
        raise PatchError(f"the patch must have at most {MAX_PATCH_BYTES} bytes, got {len(data)}")
    return data


def _decode(output: str) -> str:
    try:
        return base64.b64decode(output).decode("utf-8", "surrogateescape")
    except ValueError as error:  # a policy can replace the programs of an image
        raise PatchError(f"{_NOT_COMPUTED}: the output is not base64: {error}") from error


def _run_comparison(
    sandbox: Sandbox, template: Template, action: str, problem: str, stdin: bytes = b""
) -> tuple[str, str]:
    """Returns the patch and the excluded names that ``base_git.sh`` prints, both in base64."""
    scratch = f"{sandbox.path(TMP)}/.{secrets.token_hex(8)}"
    result = run_base_git(
        sandbox,
        action,
        timeout_s=TIMEOUT_S,
        max_output_bytes=MAX_PATCH_BYTES // 3 * 4 + 8 + _MAX_NAMES_BYTES,  # in base64
        stdin=stdin,
        CG_TMP=scratch,
        CG_COMMIT=template.base_commit,
        CG_MAX=str(MAX_PATCH_BYTES),
    )
    if result.timed_out or result.out_of_memory:  # the script was killed before it could clean up
        run_base_git(sandbox, "clean", CG_TMP=scratch)
    if not result.ok:
        failure = _failure(result, problem)
        # In an image, a policy can have removed the program, so it is not missing on this machine.
        raise PatchError(str(failure)) if template.spec.image else failure
    if result.truncated:
        raise PatchError(f"the patch must have at most {MAX_PATCH_BYTES} bytes, got more")
    patch, _, names = result.output.rpartition(_RESULT)[2].partition(" ")
    return patch, names


def _failure(result: ExecResult, problem: str) -> PatchError | MissingDependencyError:
    lines = result.output.splitlines()
    disk_errors = [line for line in lines if any(text in line for text in _DISK_FULL)]
    message = error_line("\n".join(disk_errors) or result.output)
    if result.timed_out:
        return PatchError(f"{problem}: git took more than {TIMEOUT_S:g} s")
    if result.out_of_memory:
        return PatchError(f"{problem}: git needs more memory than the sandbox has")
    if disk_errors:
        return PatchError(f"{problem}: the sandbox's disk is full: {message}")
    if result.exit_code == NO_PROGRAM_CODE:
        return MissingDependencyError(
            f"{problem}: {message}; git, findutils and patch must be installed below /usr; "
            "run: apt-get install git findutils patch"
        )
    if result.exit_code == _TOO_LARGE:
        return PatchError(
            f"{problem}: {last_line(result.output)} is larger than {MAX_PATCH_BYTES} bytes"
        )
    if _NO_DIFF in message:  # git's message recommends an option of `git apply`
        return PatchError(f"{problem}: its text has no diff that git can read")
    return PatchError(f"{problem}: {message}")
