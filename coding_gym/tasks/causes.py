"""Known causes of a gold patch that does not resolve its task, with their remedies."""

import re
from collections.abc import Iterable, Iterator

from coding_gym.grade import Grade, TestStatus
from coding_gym.sandbox import open_sandbox
from coding_gym.task import Task
from coding_gym.text.truncate import first_names
from coding_gym.workspace import Template

_EXCLUDE = "remedy: list the test in excluded_tests of environments"
# Parts of a test id that differ between runs, machines or plug-ins.
_UNSTABLE_PARTS = {
    "a memory address": re.compile(r"\b0x[0-9a-f]{6,}\b"),
    "a date": re.compile(r"\b(19|20)\d\d-[01]\d-[0-3]\d\b"),
    "a temporary path": re.compile(r"/(tmp|var/folders)/|pytest-of-"),
    "an absolute path": re.compile(r"\[(.*-)?/(home|root|Users|testbed|workspace)\b"),
    "an xdist group": re.compile(r"[^\[]@[\w.-]+$"),
}
_SUBMODULE = re.compile(r"^[+-]Subproject commit ", re.MULTILINE)
_LFS = "version https://git-lfs.github.com/spec/v1"
_FIND_LFS = f"git grep -lI -m 1 '^{_LFS}'"
# "Invalid argument: '/" is the error of chown to a user that is not mapped into the sandbox.
_FORBIDDEN = re.compile(r"PermissionError|Invalid argument: '/|not permitted|Permission denied")
_NO_VERSION = re.compile(
    r"setuptools[-_]scm|hatch[-_]vcs|versioneer|unable to detect version", re.IGNORECASE
)


def causes(task: Task, template: Template, failed_grade: Grade, backend: str) -> Iterator[str]:
    """Yields the possible causes of a failed grade of the gold patch, each with its remedy.

    Args:
        task: The task.
        template: The template of the task.
        failed_grade: The failed grade of the gold patch.
        backend: Name of the sandbox backend.
    """
    if _SUBMODULE.search(task.gold_patch):
        yield (
            "the gold patch changes a submodule, and the tree of a task has no submodules; remedy: "
            "make the row from the submodule's repository"
        )
    with open_sandbox(template.spec, backend=backend) as sandbox:
        pointers = sandbox.run(_FIND_LFS)
    if pointers.ok:
        names = first_names(pointers.output.splitlines())
        yield (
            f"{names} hold pointers of Git LFS instead of content; remedy: set the field 'folder' "
            "to a clone, and run this command in the clone: git lfs pull"
        )
    if task.is_in_image and _FORBIDDEN.search(failed_grade.detail):
        yield (
            "root in a sandbox cannot chown to other users, open files of mode 000, listen below "
            f"port 1024 or lower nice values; {_EXCLUDE}"
        )
    statuses = {**failed_grade.fail_to_pass, **failed_grade.pass_to_pass}
    yield from unstable_ids(t for t, status in statuses.items() if status is TestStatus.MISSING)


def unstable_ids(tests: Iterable[str]) -> Iterator[str]:
    """Yields a message for each test id that can differ between runs or machines."""
    for test in tests:
        for kind, pattern in _UNSTABLE_PARTS.items():
            if pattern.search(test):
                yield f"test id {test!r} contains {kind}; {_EXCLUDE}"
                break


def remedy_of_build(message: str) -> str:
    """Returns the remedy if the build failed because git tags are missing; otherwise ""."""
    if not _NO_VERSION.search(message):
        return ""
    return (
        "; a checkout has no tags to read a version from; remedy: begin the install command with "
        "`export SETUPTOOLS_SCM_PRETEND_VERSION=VERSION;`"
    )
