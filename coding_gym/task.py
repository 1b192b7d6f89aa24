"""One software bug to repair, in SWE-bench's schema and a little beyond it."""

import ast
import difflib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from numbers import Real
from typing import Any

from coding_gym.arguments import MAX_SECONDS
from coding_gym.errors import InvalidTaskError

# SWE-bench's key for each field whose Python name differs.
_ROW_KEYS = {
    "task_id": "instance_id",
    "gold_patch": "patch",
    "fail_to_pass": "FAIL_TO_PASS",
    "pass_to_pass": "PASS_TO_PASS",
}


@dataclass(frozen=True, slots=True)
class FilesTree:
    """A tree given inline.

    Attributes:
        files: Text by path relative to the root.
    """

    files: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class FolderTree:
    """A tree that lies in a folder of this machine, without its history.

    Attributes:
        folder: The folder.
        reverse_patch: A unified diff that is taken back to reach the base; "" where the folder is
            the base already.
    """

    folder: str
    reverse_patch: str = ""


@dataclass(frozen=True, slots=True)
class GitTree:
    """A tree in a git repository, at the task's base commit.

    Attributes:
        repository: A local path, or a URL that git can clone.
    """

    repository: str


Tree = FilesTree | FolderTree | GitTree


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """One bug: where the tree comes from, what is wrong, and how a repair is judged.

    *Visible* tests are those in the tree at base. *Hidden* tests are ``test_patch`` with the two
    lists; only the grading sandbox ever holds them.

    Attributes:
        task_id: Unique within its source (SWE-bench's ``instance_id``).
        tree: Where the base tree comes from.
        problem_statement: The issue, as a user would have written it.
        gold_patch: The reference repair, a unified diff (SWE-bench's ``patch``).
        test_patch: The hidden tests, a unified diff against the base.
        fail_to_pass: Ids of the tests that fail at base and must pass.
        pass_to_pass: Ids of the tests that pass at base and must still pass.
        excluded_tests: Expected tests left out of the two lists because they proved unreliable.
        repo: ``owner/name``, or the program's name.
        base_commit: The commit to start from; "" for trees without history.
        hints_text: Discussion from the tracker; the environment never shows it.
        version: The project's version, part of the environment's key.
        environment_setup_commit: As in SWE-bench, part of the environment's key.
        created_at: ISO 8601 date of the issue; the date of every file and of the base commit.
        difficulty: A label of the source's own.
        language: Lower-case name of the main language.
        split: ``train``, ``test``, or a label of the source's own.
        interpreter: ``base`` for the interpreter that runs this package (standard library and
            pytest only), or a version such as ``3.9`` that is found on the machine.
        install_commands: Shell commands that build the environment, run once in the tree with the
            network on and a fresh virtual environment of ``interpreter`` first in PATH.
        visible_test_command: Shell command that runs the visible tests, for people and agents; the
            environment itself never runs it.
        grading_timeout_s: Seconds that one run of the hidden tests may take at least.
        gold_duration_s: Wall seconds that grading the gold patch took when the task was validated;
            0 where unknown.
    """

    task_id: str
    # Not in the repr: long, and most of it is for graders only.
    tree: Tree = field(repr=False)
    problem_statement: str = field(repr=False)
    gold_patch: str = field(default="", repr=False)
    test_patch: str = field(default="", repr=False)
    fail_to_pass: tuple[str, ...] = field(default=(), repr=False)
    pass_to_pass: tuple[str, ...] = field(default=(), repr=False)
    excluded_tests: tuple[str, ...] = ()
    repo: str = ""
    base_commit: str = ""
    hints_text: str = ""
    version: str = ""
    environment_setup_commit: str = ""
    created_at: str = ""
    difficulty: str = ""
    language: str = "python"
    split: str = ""
    interpreter: str = "base"
    install_commands: tuple[str, ...] = ()
    visible_test_command: str = "python -m pytest -q"
    grading_timeout_s: float = 60.0
    gold_duration_s: float = field(default=0.0, repr=False)

    @property
    def expected_tests(self) -> tuple[str, ...]:
        """Every test id that must pass, without repeats."""
        return tuple(dict.fromkeys(self.fail_to_pass + self.pass_to_pass))

    def to_row(self) -> dict[str, Any]:
        """Returns the task as a JSON object that `from_row` reads back to an equal task."""
        row: dict[str, Any] = {}
        for spec in fields(self):
            if spec.name == "tree":
                row |= _tree_to_row(self.tree)
                continue
            value = getattr(self, spec.name)
            row[_ROW_KEYS.get(spec.name, spec.name)] = (
                list(value) if isinstance(value, tuple) else value
            )
        return row

    @classmethod
    def from_row(cls, row: Mapping[str, Any], *, where: str = "") -> "Task":
        """Reads a task from a SWE-bench row.

        Args:
            row: The JSON object. Lists may be lists, or text that holds one in JSON or as a Python
                literal. Beyond SWE-bench's keys it may hold this class's own (``interpreter``,
                ``install_commands`` …) and one of ``files``, ``folder`` (with ``reverse_patch``)
                and ``repository``; without any, the tree is ``https://github.com/<repo>``. Keys
                that are not known are ignored, as every dataset adds some, but not misspelt ones.
            where: Names the row in errors, such as ``tasks.jsonl line 3``.

        Raises:
            InvalidTaskError: A field is missing or is not what it must be.
        """
        reader = _RowReader(row, where)
        values: dict[str, Any] = {}
        keys = {_ROW_KEYS.get(spec.name, spec.name) for spec in fields(cls)}
        reader.refuse_typos((keys - {"tree"}) | {"files", "folder", "reverse_patch", "repository"})
        for key in ("instance_id", "problem_statement"):
            if row.get(key) is None:
                raise reader.error(key, "is missing")
        for spec in fields(cls):
            if spec.name == "tree":
                values["tree"] = reader.tree()
                continue
            key = _ROW_KEYS.get(spec.name, spec.name)
            if row.get(key) is not None:
                values[spec.name] = reader.read(key, spec.type)
        task = cls(**values)
        if isinstance(task.tree, GitTree) and not task.base_commit:
            raise reader.error("base_commit", "is missing, and the tree is a git repository")
        return task


def default_url(repo: str) -> str:
    """Returns where the repository of a row is that only names it as ``owner/name``."""
    return f"https://github.com/{repo}"


def _tree_to_row(tree: Tree) -> dict[str, Any]:
    if isinstance(tree, FilesTree):
        return {"files": dict(tree.files)}
    if isinstance(tree, FolderTree):
        return {"folder": tree.folder, "reverse_patch": tree.reverse_patch}
    return {"repository": tree.repository}


@dataclass(frozen=True, slots=True)
class _RowReader:
    """Reads one row; every error names the row, the field and the value."""

    row: Mapping[str, Any]
    where: str
    shown: int = field(default=80)

    def error(self, key: str, problem: str) -> InvalidTaskError:
        name = self.row.get("instance_id")
        row = " ".join(str(p) for p in (self.where, name and f"({name})") if p) or "task row"
        return InvalidTaskError(f"{row}: field {key!r} {problem}")

    def refuse_typos(self, known: set[str]) -> None:
        for key in sorted(key for key in self.row.keys() - known if isinstance(key, str)):
            close = difflib.get_close_matches(key, known - self.row.keys(), n=1, cutoff=0.85)
            if close:
                raise self.error(key, f"is not known; did you mean {close[0]!r}?")

    def wrong(self, key: str, wanted: str) -> InvalidTaskError:
        value = repr(self.row[key])
        cut = value if len(value) <= self.shown else value[: self.shown] + "…"
        return self.error(key, f"must be {wanted}, got {cut}")

    def read(self, key: str, kind: Any) -> Any:
        if kind is str:
            return self.text(key)
        if kind is float:
            return self.seconds(key)
        return self.texts(key)

    def seconds(self, key: str) -> float:
        value = self.row[key]
        is_number = not isinstance(value, bool) and isinstance(value, Real)
        may_be_zero = key == "gold_duration_s"
        if is_number and 0 <= value <= MAX_SECONDS and (value or may_be_zero):
            return float(value)
        least = "of 0 or more" if may_be_zero else "above 0"
        raise self.wrong(key, f"a number of seconds {least} and at most {MAX_SECONDS:g}")

    def text(self, key: str) -> str:
        value = self.row[key]
        if isinstance(value, int | float) and not isinstance(value, bool) and key == "version":
            return str(value)
        if not isinstance(value, str):
            raise self.wrong(key, "text")
        if key == "instance_id" and not value.strip():
            raise self.wrong(key, "a name")
        return value

    def texts(self, key: str) -> tuple[str, ...]:
        value = self.row[key]
        if isinstance(value, str):
            value = self.parse_list(key, value)
        elif hasattr(value, "tolist"):  # a NumPy array, as Parquet readers give
            value = value.tolist()
        if not isinstance(value, list | tuple) or not all(isinstance(v, str) for v in value):
            raise self.wrong(key, "a list of texts, or such a list written as JSON")
        if key == "install_commands" and any("\0" in command for command in value):
            raise self.wrong(key, "commands for a shell, which cannot hold NUL")
        return tuple(value)

    def parse_list(self, key: str, text: str) -> Any:
        if not text.strip():
            return []
        try:
            return json.loads(text)
        except (ValueError, RecursionError):
            pass
        try:
            return ast.literal_eval(text)
        except (ValueError, SyntaxError, RecursionError, MemoryError):
            raise self.wrong(key, "a list of texts, or such a list written as JSON") from None

    def tree(self) -> Tree:
        if self.row.get("files") is not None:
            files = self.row["files"]
            if not isinstance(files, Mapping) or not all(
                isinstance(k, str) and isinstance(v, str) for k, v in files.items()
            ):
                raise self.wrong("files", "an object of texts by path")
            return FilesTree(dict(files))
        if self.row.get("folder") is not None:
            reverse = self.text("reverse_patch") if self.row.get("reverse_patch") else ""
            return FolderTree(self.text("folder"), reverse)
        if self.row.get("repository") is not None:
            return GitTree(self.text("repository"))
        if not self.row.get("repo"):
            raise self.error("repo", "is missing, and there is no 'files', 'folder', 'repository'")
        return GitTree(default_url(self.text("repo")))
