"""The models of a task's row in JSONL, ``task.toml`` or environments; imports pydantic."""

import datetime
import difflib
import json
import math
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Annotated, Any, TypeVar
from urllib.parse import quote

from pydantic import (
    AfterValidator,
    AliasChoices,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    TypeAdapter,
    ValidationError,
)

from coding_gym import syntax
from coding_gym.arguments import MAX_SECONDS, hint, is_integer, is_number
from coding_gym.errors import InvalidTaskError
from coding_gym.json_record import first_problem
from coding_gym.task import FilesTree, FolderTree, GitTree, ImageTree, Task, Tree, default_url

_MAX_NAME = 200  # bytes; a file name with its suffix has at most 255
_MILLISECONDS = 10**11  # a larger integer date is in milliseconds, any other in seconds

Row = Mapping[str, Any]


def _argument_text(text: str) -> str:
    """Returns the text; raises ValueError if it cannot be an argument of a program."""
    try:
        if b"\0" not in text.encode():
            return text
    except UnicodeEncodeError:
        pass
    raise ValueError("must be Unicode text without NUL")


def _printable_name(text: str) -> str:
    if text.strip() and text.isprintable() and len(quote(text, safe="")) <= _MAX_NAME:
        return text
    raise ValueError(f"must be a printable name of at most {_MAX_NAME} percent-encoded bytes")


def _parsed_list(value: Any) -> Any:
    """Returns the list in an array, or in text with JSON or a Python literal."""
    if not isinstance(value, str):
        return value.tolist() if hasattr(value, "tolist") else value
    if not value.strip():
        return []
    with suppress(ValueError, RecursionError):
        return json.loads(value)
    try:
        return syntax.literal_eval(value)
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        raise ValueError("must be a list of texts, or JSON text of such a list") from None


def _number_text(value: Any) -> Any:
    return str(value) if is_number(value) and math.isfinite(value) else value


def _test_id(text: str) -> str:
    """Returns the id of a test without ``./`` before its file."""
    return re.sub(r"^(?:\./+)+(?=[^:\n]+::)", "", _argument_text(text))


def _date_text(value: Any) -> Any:
    if isinstance(value, datetime.date):  # includes its subclass datetime
        return value.isoformat()
    if is_integer(value):
        with suppress(ValueError, OverflowError, OSError):
            seconds = value / 1000 if value > _MILLISECONDS else value
            return datetime.datetime.fromtimestamp(seconds, datetime.UTC).isoformat()
    return value


Text = Annotated[str, AfterValidator(_argument_text)]
Texts = Annotated[tuple[Text, ...], BeforeValidator(_parsed_list)]
TestId = Annotated[str, AfterValidator(_test_id)]
TestIds = Annotated[tuple[TestId, ...], BeforeValidator(_parsed_list)]
_Seconds = Annotated[float, Field(strict=True, le=MAX_SECONDS, allow_inf_nan=False)]


def _either(*names: str) -> Any:
    return Field(default=None, validation_alias=AliasChoices(*names))


class EnvironmentRow(BaseModel):
    """The environment of a task, in a row, a ``task.toml`` or an entry of environments.

    The attributes are those of `coding_gym.task.Task`; None for missing fields.
    """

    model_config = ConfigDict(extra="ignore", frozen=True)

    image: Text | None = None
    image_path: Text | None = None
    interpreter: Text | None = None
    install_commands: Texts | None = None
    environment_setup_commit: Text | None = None
    visible_test_command: Text | None = None
    runner: Text | None = None
    test_command: Text | None = None
    test_report: Text | None = None
    grading_timeout_s: Annotated[_Seconds, Field(gt=0)] | None = None
    excluded_tests: TestIds | None = None

    @property
    def values(self) -> dict[str, Any]:
        """The fields that the row has, by their names in `Task`."""
        return {key: value for key, value in self if value is not None}


class TaskRow(EnvironmentRow):
    """A whole task; see `tree` for the fields that can be the source of its base tree."""

    task_id: Annotated[str, AfterValidator(_printable_name)] = Field(
        validation_alias=AliasChoices("instance_id", "id")
    )
    # In the statement, patches and files a lone surrogate represents a byte that is not UTF-8.
    problem_statement: str
    gold_patch: str | None = _either("patch")
    test_patch: str | None = None
    fail_to_pass: TestIds | None = _either("FAIL_TO_PASS", "fail_to_pass")
    pass_to_pass: TestIds | None = _either("PASS_TO_PASS", "pass_to_pass")
    repo: Text | None = None
    base_commit: Text | None = None
    version: Annotated[Text | None, BeforeValidator(_number_text)] = None
    created_at: Annotated[Text | None, BeforeValidator(_date_text)] = None
    difficulty: Text | None = None
    language: Text | None = None
    split: Text | None = None
    gold_duration_s: Annotated[_Seconds, Field(ge=0)] | None = None
    grading_plan: Text | None = None
    impossible_test: TestId | None = None
    max_turns: Annotated[int, Field(strict=True, ge=0)] | None = None
    files: dict[str, str] | None = None
    folder: Text | None = None
    repository: Text | None = None
    reverse_patch: str = ""

    def tree(self) -> Tree | None:
        """Returns the source of the base tree; None if the row names no source."""
        if self.files is not None:
            return FilesTree(self.files)
        if self.folder is not None:
            return FolderTree(self.folder, self.reverse_patch)
        if self.repository is not None:
            return GitTree(self.repository, self.reverse_patch)
        if self.image_path:
            return ImageTree(self.reverse_patch)
        return GitTree(default_url(self.repo), self.reverse_patch) if self.repo else None


_TREE_FIELDS = {"files", "folder", "repository", "reverse_patch"}
_Model = TypeVar("_Model", bound=EnvironmentRow)


def read_task(row: Row, position: str = "", *, is_closed: bool = False) -> Task:
    """Returns the task of a row in SWE-bench's schema.

    Args:
        row: The JSON object. A list can also be text: JSON or a Python literal. The keys are
            SWE-bench's, those of `Task` (``interpreter``, ``install_commands`` …), and for the tree
            one of ``files``, ``folder`` and ``repository`` (the last two with an optional
            ``reverse_patch``). Without these the tree is in the image if there is an
            ``image_path``, else at ``https://github.com/<repo>``.
        position: Names the row in errors, such as ``tasks.jsonl line 3``.
        is_closed: Whether every unknown key is an error; otherwise only misspelt keys are errors.

    Raises:
        InvalidTaskError: A field is missing or malformed, or a key is unknown; the message has
            row, field and value.
    """
    model = parse(TaskRow, row, position, is_closed=is_closed)
    tree = model.tree()
    if tree is None:
        names = "'repo', 'files', 'folder', 'repository' or 'image_path'"
        raise row_error(row, position, "repo", f"is missing; the row needs one of {names}")
    values = {key: value for key, value in model.values.items() if key not in _TREE_FIELDS}
    if model.image_path:
        values.setdefault("interpreter", "image")
    task = without_excluded_tests(Task(tree=tree, **values), row_label(row, position))
    if problem := task.image_problem():
        raise row_error(row, position, *problem)
    if task.impossible_test and task.impossible_test not in task.fail_to_pass:
        raise row_error(row, position, "impossible_test", "must be a test of FAIL_TO_PASS")
    if isinstance(tree, GitTree) and not task.base_commit:
        raise row_error(row, position, "base_commit", "is missing; a git repository needs it")
    return task


def without_excluded_tests(task: Task, label: str) -> Task:
    """Returns the task with no excluded test in ``fail_to_pass`` and ``pass_to_pass``.

    Raises:
        InvalidTaskError: All fail-to-pass tests are excluded; the message begins with ``label``.
    """
    fail_to_pass, pass_to_pass = (
        tuple(test for test in tests if test not in task.excluded_tests)
        for tests in (task.fail_to_pass, task.pass_to_pass)
    )
    if task.fail_to_pass and not fail_to_pass:
        raise InvalidTaskError(
            f"{label}: excluded_tests must keep at least one test of FAIL_TO_PASS, but excludes "
            f"all {len(task.fail_to_pass)}; exclude the task with task_ids"
        )
    return replace(task, fail_to_pass=fail_to_pass, pass_to_pass=pass_to_pass)


def parse(model: type[_Model], row: Row, position: str, *, is_closed: bool = False) -> _Model:
    """Returns the model of a row; fields that are None count as missing.

    If ``is_closed``, every unknown key is an error; otherwise only a misspelt key is an error.

    Raises:
        InvalidTaskError: The first error, with row, field and value.
    """
    present_fields = {str(key): value for key, value in row.items() if value is not None}
    known_names = [name for key, field in model.model_fields.items() for name in _names(key, field)]
    for key in sorted(present_fields.keys() - known_names):
        unused_names = [name for name in known_names if name not in present_fields]
        if is_closed or difflib.get_close_matches(key, unused_names, n=1, cutoff=0.85):
            raise row_error(row, position, key, f"is not known; {hint(key, unused_names)}")
    try:
        return model.model_validate(present_fields)
    except ValidationError as error:
        field, problem = _field_problem(error)
    raise row_error(row, position, field, problem)


def value_of(row: Row, key: str, kind: Any, position: str, default: Any = None) -> Any:
    """Returns the value of a field, validated as type ``kind``; ``default`` if there is no value.

    Raises:
        InvalidTaskError: The field is malformed.
    """
    if row.get(key) is None:
        return default
    try:
        return TypeAdapter(dict[str, kind]).validate_python({key: row[key]})[key]
    except ValidationError as error:
        _, problem = _field_problem(error)
    raise row_error(row, position, key, problem)


def row_error(row: Row, position: str, key: str, problem: str) -> InvalidTaskError:
    """Returns the error of a field; the message has position and id of the row, and the field."""
    return InvalidTaskError(f"{row_label(row, position)}: field {key!r} {problem}")


def row_label(row: Row, position: str) -> str:
    """Returns the name of a row for errors: its position and its id."""
    name = row.get("instance_id") or row.get("id")
    if isinstance(name, str):
        with suppress(ValueError):
            position = f"{position} ({_printable_name(name)})".lstrip()
    return position or "task row"


def _names(key: str, field: Any) -> list[str]:
    choices = getattr(field.validation_alias, "choices", [key])
    return [str(choice) for choice in choices]


def _field_problem(error: ValidationError) -> tuple[str, str]:
    """Returns the first invalid field and its problem, in one line."""
    (field, *steps), problem = first_problem(error)
    items = [step + 1 for step in steps if isinstance(step, int)]
    label = "".join(f"item {number} " for number in items[:1])
    return str(field), f"{label}{problem}"
