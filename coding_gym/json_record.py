"""Conversion of frozen dataclasses to JSON objects and back, by pydantic."""

from collections.abc import Mapping
from dataclasses import fields
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar, Self

from coding_gym.arguments import check_arguments
from coding_gym.errors import InvalidArgumentError

if TYPE_CHECKING:
    from pydantic import ValidationError

_MAX_VALUE = 80  # characters of a value in an error


class JsonRecord:
    """Base of dataclasses of JSON values, enumerations, records, and tuples or maps of these."""

    __slots__ = ()

    not_written: ClassVar[Any] = None
    """Fields that `to_json` skips, in the form of pydantic's argument ``exclude``."""

    @classmethod
    @cache
    def _adapter(cls) -> Any:
        from pydantic import TypeAdapter  # slow to import

        return TypeAdapter(cls)

    def to_json(self) -> dict[str, Any]:
        """Returns the record as a JSON object."""
        data: dict[str, Any] = self._adapter().dump_python(
            self, mode="json", exclude=self.not_written, warnings=False
        )
        return data

    @classmethod
    def from_arguments(cls, data: Any, path: str) -> Self:
        """Returns the record of a user's data, as `from_json` does, but rejects unknown fields."""
        if isinstance(data, Mapping):
            check_arguments(path, data, [attribute.name for attribute in fields(cls)])  # type: ignore[arg-type]
        return cls.from_json(data, path)

    @classmethod
    def from_json(cls, data: Any, path: str = "") -> Self:
        """Returns the record of an object that `to_json` returned.

        A missing field takes its default, so that older files are read; unknown fields are ignored,
        so that newer files are read. Text with a number is accepted as a number.

        Args:
            data: The JSON value.
            path: The path of ``data`` in a document, for errors.

        Raises:
            InvalidArgumentError: A field without a default is missing, or a value has the wrong
                type; the message contains the path of the field.
        """
        from pydantic import ValidationError

        try:
            value: Self = cls._adapter().validate_python(data)
        except ValidationError as error:
            location, problem = first_problem(error)
        else:
            return value
        steps = (f"[{step}]" if isinstance(step, int) else f".{step}" for step in location)
        raise InvalidArgumentError(f"{path or cls.__name__}{''.join(steps)} {problem}")


def first_problem(error: "ValidationError") -> tuple[tuple[int | str, ...], str]:
    """Returns the location and a one-line description of pydantic's first error."""
    details = error.errors(include_url=False)[0]
    if details["type"] == "missing":
        return details["loc"], "is missing"
    if isinstance(cause := details.get("ctx", {}).get("error"), InvalidArgumentError):
        return details["loc"], str(cause)  # the cause's message contains the value
    value = repr(details["input"])
    excerpt = value if len(value) <= _MAX_VALUE else f"{value[:_MAX_VALUE]}…"
    message = details["msg"].removeprefix("Value error, ").replace("Input should be", "must be")
    return details["loc"], f"{message}, got {excerpt}"
