"""Reading one row of a dataset field by field."""

import difflib
import json
import math
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from coding_gym import syntax
from coding_gym.arguments import MAX_SECONDS, is_integer, is_number
from coding_gym.errors import InvalidTaskError

_MAX_NAME = 255
_MAX_PROBLEM = 400
_MAX_VALUE = 80
_LIST = "a list of texts, or such a list written as JSON"
# Fields whose text is no path, name or command.
_FREE_TEXTS = frozenset(
    {"problem_statement", "hints_text", "patch", "test_patch", "fix_patch", "reverse_patch"}
)


@dataclass(frozen=True, slots=True)
class RowReader:
    """Reads one row; every error is an InvalidTaskError that names row, field and value.

    Attributes:
        row: The JSON object.
        where: Names the row in errors, such as ``tasks.jsonl line 3``.
    """

    row: Mapping[str, Any]
    where: str

    @property
    def label(self) -> str:
        """Names the row in errors: its position and its id."""
        name = self.row.get("instance_id")
        named = f"({name})" if isinstance(name, str) and _is_name(name) else ""
        return " ".join(part for part in (self.where, named) if part) or "task row"

    def error(self, key: str, problem: str) -> InvalidTaskError:
        """Returns the error for a field."""
        cut = problem if len(problem) <= _MAX_PROBLEM else f"{problem[:_MAX_PROBLEM]}…"
        return InvalidTaskError(f"{self.label}: field {key!r} {cut}")

    def refuse_typos(self, known: set[str]) -> None:
        """Raises InvalidTaskError for a key that looks like a known one which is missing."""
        for key in sorted(key for key in self.row.keys() - known if isinstance(key, str)):
            close = difflib.get_close_matches(key, known - self.row.keys(), n=1, cutoff=0.85)
            if close:
                raise self.error(key, f"is not known; did you mean {close[0]!r}?")

    def wrong(self, key: str, wanted: str, value: Any = None) -> InvalidTaskError:
        """Returns the error for a field whose value, or one value in it, is not what is wanted."""
        displayed = repr(self.row[key] if value is None else value)
        cut = displayed if len(displayed) <= _MAX_VALUE else f"{displayed[:_MAX_VALUE]}…"
        return self.error(key, f"must be {wanted}, got {cut}")

    def read(self, key: str, kind: Any) -> Any:
        """Returns a text, a number of seconds (``kind`` is float), a count or a list of texts."""
        readers = {str: self.text, int: self.count, float: self.seconds}
        return readers.get(kind, self.texts)(key)

    def required(self, key: str) -> str:
        """Returns the text of a field that must be there."""
        if self.row.get(key) is None:
            raise self.error(key, "is missing")
        return self.text(key)

    def count(self, key: str) -> int:
        """Returns a whole number of at least 0."""
        value = self.row[key]
        if not is_integer(value) or value < 0:
            raise self.wrong(key, "a whole number of at least 0")
        return value

    def seconds(self, key: str) -> float:
        """Returns a number of seconds."""
        value = self.row[key]
        may_be_zero = key == "gold_duration_s"
        if is_number(value) and 0 <= value <= MAX_SECONDS and (value or may_be_zero):
            return float(value)
        least = "of 0 or more" if may_be_zero else "above 0"
        raise self.wrong(key, f"a number of seconds {least} and at most {MAX_SECONDS:g}")

    def text(self, key: str) -> str:
        """Returns a text; a version may be written as a number."""
        value = self.row[key]
        if key == "version" and is_number(value) and math.isfinite(value):
            return str(value)
        if not isinstance(value, str):
            raise self.wrong(key, "text")
        if key not in _FREE_TEXTS and not _can_be_passed(value):
            raise self.wrong(key, "text of Unicode without NUL")
        if key == "instance_id" and not _is_name(value):
            raise self.wrong(key, f"a name of at most {_MAX_NAME} printable characters")
        return value

    def texts(self, key: str) -> tuple[str, ...]:
        """Returns a list of texts, which may be written as a text that holds one."""
        value = self.row[key]
        if isinstance(value, str):
            value = self._parse_list(key, value)
        elif hasattr(value, "tolist"):  # a NumPy array, as Parquet readers give
            value = value.tolist()
        if not isinstance(value, list | tuple) or not all(isinstance(v, str) for v in value):
            raise self.wrong(key, _LIST)
        for one in value:
            if not _can_be_passed(one):
                raise self.wrong(key, "a list of texts of Unicode without NUL", one)
        return tuple(value)

    def _parse_list(self, key: str, text: str) -> Any:
        """Returns the value of a text that is JSON or a Python literal."""
        if not text.strip():
            return []
        with suppress(ValueError, RecursionError):
            return json.loads(text)
        try:
            return syntax.literal_eval(text)
        except (ValueError, SyntaxError, RecursionError, MemoryError):
            raise self.wrong(key, _LIST) from None


def _is_name(text: str) -> bool:
    return bool(text.strip()) and text.isprintable() and len(text) <= _MAX_NAME


def _can_be_passed(text: str) -> bool:
    """Returns whether a text can be an argument of a program: valid Unicode, without NUL."""
    try:
        return b"\0" not in text.encode()
    except UnicodeEncodeError:
        return False
