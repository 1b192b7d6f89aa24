"""Patterns: parsing, matching, building."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from waypoint.converters import Converter, PathConverter
from waypoint.errors import BadPattern, NoReverse
from waypoint.percent import join_path

_CAPTURE = re.compile(r"<(?:(?P<converter>[a-z_]\w*):)?(?P<name>[A-Za-z_]\w*)>")


@dataclass(frozen=True)
class Capture:
    """A segment of a pattern that takes a value."""

    name: str
    converter: Converter

    @property
    def spans_segments(self) -> bool:
        return isinstance(self.converter, PathConverter)


@dataclass(frozen=True)
class Pattern:
    """A parsed pattern; its literal segments are plain text, not percent-encoded."""

    segments: tuple[str | Capture, ...]

    @classmethod
    def parse(cls, text: str, converters: Mapping[str, Converter]) -> Pattern:
        """Read ``/users/<int:id>``; raises ``BadPattern`` for anything malformed."""
        if not text.startswith("/"):
            raise BadPattern(f"a pattern starts with a slash, unlike {text!r}")
        segments = tuple(_segment(part, text, converters) for part in text[1:].split("/"))
        return cls(segments).checked(text)

    def checked(self, text: str) -> Pattern:
        """This pattern, once it is known that its captures go together."""
        captures = [segment for segment in self.segments if isinstance(segment, Capture)]
        names = [capture.name for capture in captures]
        if len(set(names)) < len(names):
            raise BadPattern(f"{text!r} uses a parameter name twice")
        if any(capture.spans_segments for capture in captures) and not (
            isinstance(self.segments[-1], Capture)
            and sum(capture.spans_segments for capture in captures) == 1
            and self.segments[-1].spans_segments
        ):
            raise BadPattern(f"a path parameter must come last in {text!r}")
        return self

    def under(self, prefix: Pattern) -> Pattern:
        """This pattern mounted below ``prefix``."""
        return Pattern(prefix.segments + self.segments)

    def match(self, path: Sequence[str]) -> dict[str, Any] | None:
        """The parameters if the decoded segments of a path match, else ``None``."""
        last = self.segments[-1]
        if isinstance(last, Capture) and last.spans_segments:
            path = [*path[: len(self.segments) - 1], "/".join(path[len(self.segments) - 1 :])]
        if len(path) != len(self.segments):
            return None
        params: dict[str, Any] = {}
        for segment, text in zip(self.segments, path, strict=True):
            if isinstance(segment, Capture):
                try:
                    params[segment.name] = segment.converter.to_python(text)
                except ValueError:
                    return None
            elif segment != text:
                return None
        return params

    def build(self, values: Mapping[str, Any]) -> str:
        """The percent-encoded path for these parameters, all of which must be wanted."""
        captures = {segment.name for segment in self.segments if isinstance(segment, Capture)}
        if captures != set(values):
            wanted, got = sorted(captures), sorted(values)
            raise NoReverse(f"wants the parameters {wanted}, got {got}")
        parts: list[str] = []
        for segment in self.segments:
            if isinstance(segment, str):
                parts.append(segment)
                continue
            try:
                text = segment.converter.to_text(values[segment.name])
            except ValueError as error:
                raise NoReverse(f"parameter {segment.name!r}: {error}") from error
            parts += text.split("/") if segment.spans_segments else [text]
        return join_path(parts)

    @property
    def rank(self) -> tuple[int, ...]:
        """Sorts the more literal pattern first, segment by segment from the left."""
        return tuple(_rank(segment) for segment in self.segments)


def _rank(segment: str | Capture) -> int:
    if isinstance(segment, str):
        return 0
    return 2 if segment.spans_segments else 1


def _segment(part: str, text: str, converters: Mapping[str, Converter]) -> str | Capture:
    if not {"<", ">"} & set(part):
        return part
    found = _CAPTURE.fullmatch(part)
    if found is None:
        raise BadPattern(f"{part!r} in {text!r} is neither text nor <converter:name>")
    converter = converters.get(found["converter"] or "str")
    if converter is None:
        raise BadPattern(f"unknown converter {found['converter']!r} in {text!r}")
    return Capture(found["name"], converter)
