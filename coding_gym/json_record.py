"""Conversion of frozen dataclasses to JSON objects and back, by pydantic."""

from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar

from coding_gym.errors import InvalidArgumentError

if TYPE_CHECKING:
    from pydantic import TypeAdapter, ValidationError

_MAX_VALUE = 80  # characters of a value in an error

Kind = TypeVar("Kind", bound="JsonRecord")


class JsonRecord:
    """A dataclass of JSON values, enumerations, records, and tuples or maps of them."""

    __slots__ = ()

    not_written: ClassVar[Any] = None
    """Fields that `to_json` skips, in the form of pydantic's argument ``exclude``."""

    def to_json(self) -> dict[str, Any]:
        """Returns the value as a JSON object."""
        record: Any = type(self)
        adapter, skipped = _adapter(record), self.not_written
        data: dict[str, Any] = adapter.dump_python(
            self, mode="json", exclude=skipped, warnings=False
        )
        return data

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Rebuilds a value from the object that `to_json` returned; see `read_record`."""
        return read_record(cls, data)


@cache
def _adapter(record: Any) -> "TypeAdapter[Any]":
    from pydantic import TypeAdapter  # takes long to import

    return TypeAdapter(record)


def read_record(record: type[Kind], data: Any, path: str = "") -> Kind:
    """Rebuilds a record from the JSON object that its `to_json` returned.

    A missing field takes its default, so that older files are read; unknown fields are ignored, so
    that newer files are read. A number may be written as text.

    Args:
        record: The type of the record.
        data: The JSON value.
        path: The path of the value in a document, for errors.

    Raises:
        InvalidArgumentError: A field without a default is missing, or a value is of another type;
            the message has its path.
    """
    from pydantic import ValidationError

    hashable: Any = record
    try:
        value: Kind = _adapter(hashable).validate_python(data)
    except ValidationError as error:
        location, problem = first_problem(error)
    else:
        return value
    steps = (f"[{step}]" if isinstance(step, int) else f".{step}" for step in location)
    raise InvalidArgumentError(f"{path or record.__name__}{''.join(steps)} {problem}")


def first_problem(error: "ValidationError") -> tuple[tuple[int | str, ...], str]:
    """Returns the location of the first error of pydantic, and its description in one line."""
    first = error.errors(include_url=False)[0]
    if first["type"] == "missing":
        return first["loc"], "is missing"
    value = repr(first["input"])
    excerpt = value if len(value) <= _MAX_VALUE else f"{value[:_MAX_VALUE]}…"
    message = first["msg"].removeprefix("Value error, ").replace("Input should be", "must be")
    return first["loc"], f"{message}, got {excerpt}"
