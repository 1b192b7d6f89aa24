"""One serialiser for all frozen dataclasses that are kept in files: JSON objects, and back."""

from collections.abc import Mapping
from dataclasses import MISSING, fields
from enum import Enum
from functools import cache
from types import NoneType
from typing import Any, Self, TypeVar, get_args, get_origin, get_type_hints

from coding_gym.errors import InvalidArgumentError

Kind = TypeVar("Kind", bound="JsonRecord")


class JsonRecord:
    """A dataclass of JSON values, enumerations, records, and tuples or maps of them."""

    __slots__ = ()

    def to_json(self) -> dict[str, Any]:
        """Returns the value as a JSON object."""
        record: Any = type(self)
        return {name: _written(getattr(self, name)) for name in _kinds(record)}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Rebuilds a value from the object that `to_json` returned; see `read_record`."""
        return read_record(cls, data)


@cache
def _kinds(record: Any) -> dict[str, Any]:
    """Returns the type of each field."""
    hints = get_type_hints(record)
    return {field.name: hints[field.name] for field in fields(record)}


@cache
def _required(record: Any) -> frozenset[str]:
    return frozenset(f.name for f in fields(record) if f.default is f.default_factory is MISSING)


@cache
def _parts(kind: Any) -> tuple[Any, tuple[Any, ...]]:
    """Returns the origin and the arguments of a generic type."""
    return get_origin(kind), get_args(kind)


def _written(value: Any) -> Any:
    if isinstance(value, JsonRecord):
        return value.to_json()
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, Mapping):
        return {key: _written(item) for key, item in value.items()}
    if isinstance(value, tuple | list):
        return [item if type(item) in (int, float, str) else _written(item) for item in value]
    return value


def read_record(record: type[Kind], data: Any, path: str = "") -> Kind:
    """Rebuilds a record from the JSON object that its `to_json` returned.

    A missing field takes its default, so that older files are read; unknown fields are ignored, so
    that newer files are read.

    Args:
        record: Its type.
        data: The JSON value.
        path: Where the value stands, for errors.

    Raises:
        InvalidArgumentError: A field without a default is missing, or a value is of another type;
            the message has its path.
    """
    path = path or record.__name__
    if not isinstance(data, Mapping):
        raise _mismatch(path, "an object", data)
    hashable: Any = record
    kinds, missing = _kinds(hashable), _required(hashable) - data.keys()
    if missing:
        raise InvalidArgumentError(f"{path} has no field {min(missing)!r}")
    return record(
        **{name: _read(kinds[name], data[name], f"{path}.{name}") for name in kinds if name in data}
    )


def _read(kind: Any, value: Any, path: str) -> Any:
    if kind is Any or type(value) is kind:
        return value
    origin, arguments = _parts(kind)
    if NoneType in arguments:
        (kind,) = set(arguments) - {NoneType}
        return None if value is None else _read(kind, value, path)
    if origin is tuple:
        return _read_list(arguments[0], value, path)
    if origin is not None:  # a mapping, whose keys JSON makes strings
        if not isinstance(value, Mapping):
            raise _mismatch(path, "an object", value)
        return {key: _read(arguments[1], each, f"{path}[{key!r}]") for key, each in value.items()}
    if issubclass(kind, JsonRecord):
        return read_record(kind, value, path)
    return _read_scalar(kind, value, path)


def _read_list(kind: Any, value: Any, path: str) -> tuple[Any, ...]:
    if not isinstance(value, list | tuple):
        raise _mismatch(path, "a list", value)
    if kind in (int, float) and all(type(each) is kind for each in value):  # many token ids
        return tuple(value)
    return tuple(_read(kind, each, f"{path}[{i}]") for i, each in enumerate(value))


def _read_scalar(kind: Any, value: Any, path: str) -> Any:
    if issubclass(kind, Enum):
        if value not in list(kind):
            raise _mismatch(path, f"one of {', '.join(map(str, kind))}", value)
        return kind(value)
    accepted = (int, float) if kind is float else kind
    if not isinstance(value, accepted) or (isinstance(value, bool) and kind is not bool):
        raise _mismatch(path, {str: "a text", bool: "true or false"}.get(kind, "a number"), value)
    return value


def _mismatch(path: str, wanted: str, value: Any) -> InvalidArgumentError:
    return InvalidArgumentError(f"{path} must be {wanted}, got {value!r:.80}")
