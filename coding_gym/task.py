"""One software bug to repair, in SWE-bench's schema with some additional fields."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import PurePosixPath
from typing import Any

# SWE-bench's key for each field whose Python name differs.
_ROW_KEYS = {
    "task_id": "instance_id",
    "gold_patch": "patch",
    "fail_to_pass": "FAIL_TO_PASS",
    "pass_to_pass": "PASS_TO_PASS",
}


@dataclass(frozen=True, slots=True)
class FilesTree:
    """A tree whose files are part of the row.

    Attributes:
        files: Text by path relative to the root.
    """

    files: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class FolderTree:
    """A tree in a folder of this machine, without its history.

    Attributes:
        folder: The folder.
        reverse_patch: A unified diff that is applied in reverse to get the base tree; "" if the
            folder is the base tree.
    """

    folder: str
    reverse_patch: str = ""


@dataclass(frozen=True, slots=True)
class GitTree:
    """A tree in a git repository, at the task's base commit.

    Attributes:
        repository: A local path, or a URL that git can clone.
        reverse_patch: A unified diff that is applied in reverse to the commit to get the base tree.
            With such a diff, the base tree has no history, because the history has the repair.
    """

    repository: str
    reverse_patch: str = ""


@dataclass(frozen=True, slots=True)
class ImageTree:
    """The tree at ``image_path`` in the task's image, without its history.

    Attributes:
        reverse_patch: As in `FolderTree`.
    """

    reverse_patch: str = ""


Tree = FilesTree | FolderTree | GitTree | ImageTree


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """One bug: the source of the tree, the report, and the tests that grade a repair.

    *Visible* tests are the tests in the base tree. *Hidden* tests are those of ``fail_to_pass`` and
    ``pass_to_pass``; only the grading sandbox contains the changes of ``test_patch``.

    Attributes:
        task_id: Id, unique within the task source (SWE-bench's ``instance_id``).
        tree: The source of the base tree.
        problem_statement: The issue, as a user writes it.
        gold_patch: The reference repair, a unified diff (SWE-bench's ``patch``).
        test_patch: The hidden tests, a unified diff against the base.
        fail_to_pass: Ids of the tests that fail on the base tree and must pass.
        pass_to_pass: Ids of the tests that pass on the base tree and must still pass.
        excluded_tests: Unreliable tests, which are in neither of these two lists.
        repo: ``owner/name``, or the program's name.
        base_commit: The commit to start from; "" for trees without history.
        version: The project's version, part of the environment's key.
        environment_setup_commit: As in SWE-bench, part of the environment's key.
        created_at: ISO 8601 date of the issue; all files and the base commit get this date.
        difficulty: A label of the source.
        language: Lower-case name of the main language.
        split: ``train``, ``test``, or another label of the source.
        image: Container image: an OCI layout folder, or a name. The image is the sandbox's root if
            ``interpreter`` is ``image`` or a path.
        image_path: The folder of the project in the image. The workspace is mounted at this path
            and includes the image's untracked files of the project, such as built extensions.
        interpreter: ``base`` for the interpreter that runs this package (standard library and
            pytest only); a version such as ``3.9`` that is installed on this machine, for the
            environment that ``install_commands`` build; ``image`` for the ``python`` of the image,
            with the image's pytest; or the path of another Python in the image.
        install_commands: Shell commands that build the environment, run once in the tree with the
            network on and a fresh virtual environment of ``interpreter`` first in PATH.
        visible_test_command: Shell command that runs the visible tests, for people and agents; the
            search for repair candidates runs pytest with the command's arguments.
        runner: The runner of the hidden tests: a name of `coding_gym.grading.runners`.
        test_command: Shell command that runs the hidden tests, for runners that need one.
        test_report: The source of results for these runners: the name of a log format, or the path
            of report files.
        grading_timeout_s: Minimum time limit of a run of the hidden tests, in seconds.
        gold_duration_s: Seconds that grading of the gold patch took at the validation of the task;
            0 if unknown.
        grading_plan: The negations of the hidden tests, as JSON text from `coding_gym.grading`; ""
            if the first grade computes them.
        impossible_test: The test of ``fail_to_pass`` that no honest program can pass, from
            `coding_gym.tasks.impossible`; "" in ordinary tasks.
        max_turns: The source's limit of turns per attempt; 0 without a limit. A lower ``max_turns``
            of the Gymnasium environment takes precedence.
    """

    task_id: str
    # Not in the repr: long fields, and fields for graders only.
    tree: Tree = field(repr=False)
    problem_statement: str = field(repr=False)
    gold_patch: str = field(default="", repr=False)
    test_patch: str = field(default="", repr=False)
    fail_to_pass: tuple[str, ...] = field(default=(), repr=False)
    pass_to_pass: tuple[str, ...] = field(default=(), repr=False)
    excluded_tests: tuple[str, ...] = ()
    repo: str = ""
    base_commit: str = ""
    version: str = ""
    environment_setup_commit: str = ""
    created_at: str = ""
    difficulty: str = ""
    language: str = "python"
    split: str = ""
    image: str = ""
    image_path: str = ""
    interpreter: str = "base"
    install_commands: tuple[str, ...] = ()
    visible_test_command: str = "python -m pytest -q"
    runner: str = "pytest"
    test_command: str = ""
    test_report: str = ""
    grading_timeout_s: float = 60.0
    gold_duration_s: float = field(default=0.0, repr=False)
    grading_plan: str = field(default="", repr=False)
    impossible_test: str = ""
    max_turns: int = 0

    @property
    def expected_tests(self) -> tuple[str, ...]:
        """Every test id that must pass, without repeats."""
        return tuple(dict.fromkeys(self.fail_to_pass + self.pass_to_pass))

    @property
    def is_in_image(self) -> bool:
        """Whether commands run in the image, with its installed packages."""
        return self.interpreter == "image" or self.interpreter.startswith("/")

    @property
    def has_own_pytest(self) -> bool:
        """Whether pytest and its plug-ins come from the task's environment."""
        return bool(self.install_commands) or self.is_in_image

    def image_problem(self) -> tuple[str, str] | None:
        """Returns the name and the problem of an invalid image field; None if all are valid."""
        path = PurePosixPath(self.image_path)
        if self.image_path and (not path.is_absolute() or ".." in path.parts or path.name == ""):
            return "image_path", f"must be an absolute path below /, got {self.image_path!r}"
        if isinstance(self.tree, ImageTree) and not self.image_path:
            return "image_path", "is missing; a tree in the image needs it"
        if not self.image and (self.is_in_image or isinstance(self.tree, ImageTree)):
            return "image", "is missing; 'image_path' or 'interpreter' needs it"
        if self.is_in_image and self.install_commands:
            return "install_commands", "must be empty: the image contains the environment"
        return None

    def to_row(self) -> dict[str, Any]:
        """Returns the task as a row; `coding_gym.load_tasks` reads an equal task from it."""
        row: dict[str, Any] = {}
        for spec in fields(self):
            value = getattr(self, spec.name)
            if spec.name == "tree":
                row |= _tree_to_row(value)
            else:
                key = _ROW_KEYS.get(spec.name, spec.name)
                row[key] = list(value) if isinstance(value, tuple) else value
        return row


def default_url(repo: str) -> str:
    """Returns the GitHub URL of ``owner/name``."""
    return f"https://github.com/{repo}"


def files_of_tests(test_ids: Iterable[str]) -> tuple[str, ...]:
    """Returns the files that ids of pytest name, each once, in the order of the tests."""
    return tuple(dict.fromkeys(test_id.partition("::")[0] for test_id in test_ids))


def _tree_to_row(tree: Tree) -> dict[str, Any]:
    if isinstance(tree, FilesTree):
        return {"files": dict(tree.files)}
    if isinstance(tree, FolderTree):
        return {"folder": tree.folder, "reverse_patch": tree.reverse_patch}
    row = {"reverse_patch": tree.reverse_patch} if tree.reverse_patch else {}
    return row if isinstance(tree, ImageTree) else {"repository": tree.repository} | row
