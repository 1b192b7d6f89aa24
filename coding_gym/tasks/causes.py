"""Known causes of a gold patch that does not resolve its task, with their remedies."""

import re
from collections.abc import Iterator

from coding_gym.grade import Grade, TestStatus
from coding_gym.sandbox import open_sandbox
from coding_gym.task import Task
from coding_gym.workspace import Template

_EXCLUDE = "remedy: exclude the tests that fail with `coding-gym validate --exclude`"
_SUBMODULE = re.compile(r"^[+-]Subproject commit ", re.MULTILINE)
_LFS = "version https://git-lfs.github.com/spec/v1"
_FIND_LFS = f"git grep -lI -m 1 '^{_LFS}'"
_MAX_NAMED = 3
# The second text is the error of chown to a user that is not mapped into the sandbox.
_FORBIDDEN = re.compile(r"PermissionError|Invalid argument: '/|not permitted|Permission denied")
_NO_VERSION = re.compile(
    r"setuptools[-_]scm|hatch[-_]vcs|versioneer|unable to detect version", re.IGNORECASE
)


def causes(task: Task, template: Template, failed: Grade, backend: str) -> Iterator[str]:
    """Yields the possible causes of a failed grade of the gold patch.

    Args:
        task: The task.
        template: Its template.
        failed: The failed grade of the gold patch.
        backend: Name of the sandbox backend.
    """
    if _SUBMODULE.search(task.gold_patch):
        yield (
            "the gold patch changes a submodule, and a task's tree has none; remedy: make the row "
            "from the submodule's repository"
        )
    with open_sandbox(template.spec, backend=backend) as sandbox:
        pointers = sandbox.run(_FIND_LFS)
    if pointers.ok:
        names = ", ".join(pointers.output.splitlines()[:_MAX_NAMED])
        yield (
            f"{names} hold pointers of Git LFS instead of content; remedy: run git lfs pull in the "
            "clone and name the tree as 'folder'"
        )
    if task.is_in_image and _FORBIDDEN.search(failed.detail):
        yield (
            "root in a sandbox cannot chown to other users, open files of mode 000, listen below "
            f"port 1024 or lower nice values; {_EXCLUDE}"
        )
    elif TestStatus.PASSED in failed.fail_to_pass.values():
        yield f"other tests of the bug pass; {_EXCLUDE}"


def remedy_of_build(message: str) -> str:
    """Returns the remedy for a build that failed because of missing git tags; else ""."""
    if not _NO_VERSION.search(message):
        return ""
    return (
        "; a checkout has no tags to read a version from; remedy: put export "
        "SETUPTOOLS_SCM_PRETEND_VERSION=VERSION before the install command"
    )
