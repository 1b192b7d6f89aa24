"""What people write about tasks, checked by pydantic; this module is imported only on use."""

import datetime
import difflib
from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeVar

from pydantic import (
    AfterValidator,
    AliasChoices,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StringConstraints,
    ValidationError,
)

from coding_gym.arguments import nearest
from coding_gym.errors import InvalidTaskError

_MAX_VALUE_CHARS = 80
# What lists are of, in errors.
_ITEMS = {
    "fail_to_pass": "test ids",
    "pass_to_pass": "test ids",
    "excluded_tests": "test ids",
    "install_commands": "shell commands",
    "install_cmds": "shell commands",
}


def _date_text(value: Any) -> Any:
    """Takes TOML's own dates as well as texts, and refuses what is not ISO 8601."""
    if isinstance(value, datetime.date):  # datetimes are dates too
        return value.isoformat()
    if isinstance(value, str) and value:
        try:
            datetime.datetime.fromisoformat(value)
        except ValueError:
            raise ValueError("must be a date such as 2024-05-14T09:30:00Z") from None
    return value


def _without_nul(value: str) -> str:
    if "\0" in value:
        raise ValueError("must hold no NUL")
    return value


Name = Annotated[
    str, StringConstraints(min_length=1, strip_whitespace=True), AfterValidator(_without_nul)
]
Seconds = Annotated[float, Field(strict=True, gt=0, allow_inf_nan=False)]


class TaskManifest(BaseModel):
    """The content of a ``task.toml``; `coding_gym.task.Task` says what the fields mean.

    Attributes:
        id: Unique among the tasks that are loaded together.
        tree: The program, relative to the folder of ``task.toml``.
        tree_state: ``base`` where the tree holds the bug, ``fixed`` where ``gold.patch`` has to be
            taken back to reach the base.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    id: Name
    problem_statement: Name
    fail_to_pass: Annotated[tuple[Name, ...], Field(min_length=1)]
    pass_to_pass: tuple[Name, ...] = ()
    excluded_tests: tuple[Name, ...] = ()
    tree: Name = "tree"
    tree_state: Literal["base", "fixed"] = "base"
    repo: str = ""
    version: str = ""
    created_at: Annotated[str, BeforeValidator(_date_text)] = ""
    split: str = ""
    difficulty: str = ""
    language: Name = "python"
    hints_text: str = ""
    interpreter: Name = "base"
    install_commands: tuple[Name, ...] = ()
    visible_test_command: Name = "python -m pytest -q"
    runner: Name = "pytest"
    test_command: str = ""
    test_report: str = ""
    grading_timeout_s: Seconds = 60.0
    gold_duration_s: Annotated[float, Field(strict=True, ge=0, allow_inf_nan=False)] = 0.0


class EnvironmentEntry(BaseModel):
    """How the environment of one row is made; keys that are not named here are ignored.

    Attributes:
        environment_setup_commit: The commit at which the install commands are known to work.
    """

    model_config = ConfigDict(extra="ignore", frozen=True)

    image: Name | None = None
    image_path: Name | None = None
    interpreter: Annotated[
        Name | None, Field(validation_alias=AliasChoices("interpreter", "python"))
    ] = None
    install_commands: Annotated[
        tuple[Name, ...] | None,
        Field(validation_alias=AliasChoices("install_commands", "install_cmds")),
    ] = None
    environment_setup_commit: Annotated[
        Name | None,
        Field(validation_alias=AliasChoices("environment_setup_commit", "base_commit")),
    ] = None
    visible_test_command: Annotated[
        Name | None, Field(validation_alias=AliasChoices("visible_test_command", "test_cmd"))
    ] = None
    runner: Name | None = None
    test_command: str | None = None
    test_report: str | None = None
    grading_timeout_s: Seconds | None = None
    excluded_tests: Annotated[
        tuple[Name, ...], Field(validation_alias=AliasChoices("excluded_tests", "p2p_bad"))
    ] = ()


Model = TypeVar("Model", bound=BaseModel)


def parse(model: type[Model], data: Mapping[str, Any], where: str) -> Model:
    """Returns ``data`` as a ``model``.

    Args:
        model: What the data must be.
        data: What was read.
        where: Names the file, and the line where there is one, in errors.

    Raises:
        InvalidTaskError: The first thing wrong, with its field and value.
    """
    try:
        return model.model_validate(data)
    except ValidationError as error:
        problem = _describe(error, model, data)
    raise InvalidTaskError(f"{where}: {problem}")


def refuse_typos(model: type[BaseModel], data: Mapping[str, Any], where: str) -> None:
    """Refuses keys that ``model`` would ignore but that look like ones it knows.

    Raises:
        InvalidTaskError: The first of them, with the key that was probably meant.
    """
    known = set(model.model_fields)
    for field in model.model_fields.values():
        if isinstance(field.validation_alias, AliasChoices):
            known |= {str(choice) for choice in field.validation_alias.choices}
    for key in sorted(data.keys() - known):
        close = difflib.get_close_matches(key, known - data.keys(), n=1, cutoff=0.85)
        if close:
            raise InvalidTaskError(
                f"{where}: field {key!r} is not known; did you mean {close[0]!r}?"
            )


def _describe(error: ValidationError, model: type[BaseModel], data: Mapping[str, Any]) -> str:
    # An unknown key first: misspelt ones make others missing.
    problems = sorted(
        error.errors(include_url=False), key=lambda problem: problem["type"] != "extra_forbidden"
    )
    first = problems[0]
    name = str(first["loc"][0])
    items = [part + 1 for part in first["loc"][1:2] if isinstance(part, int)]
    label = f"field {name!r}" + "".join(f" item {number}" for number in items)
    if first["type"] == "missing":
        return f"{label} is missing"
    if first["type"] == "extra_forbidden":
        near = nearest(name, model.model_fields.keys() - data.keys())
        hint = f"did you mean {near!r}?" if near else f"there are {', '.join(model.model_fields)}"
        return f"{label} is not known; {hint}"
    value = repr(first["input"])
    excerpt = value if len(value) <= _MAX_VALUE_CHARS else value[:_MAX_VALUE_CHARS] + "…"
    if first["type"] == "tuple_type":
        return f"{label} must be a list of {_ITEMS.get(name, 'texts')}, got {excerpt}"
    message = first["msg"].removeprefix("Value error, ").removeprefix("Input ")
    return f"{label} {message}, got {excerpt}"
