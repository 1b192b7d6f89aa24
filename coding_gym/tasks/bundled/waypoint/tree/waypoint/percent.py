"""Percent-encoding of paths, as RFC 3986 has it, over UTF-8."""

from __future__ import annotations

from collections.abc import Iterable
from urllib.parse import quote, unquote

from waypoint.errors import BadTarget

# What a path segment may hold beside letters, digits and "-._~": sub-delims, ":" and "@".
_SEGMENT_SAFE = "!$&'()*+,;=:@"


def decode(text: str) -> str:
    """``text`` with its percent-escapes resolved."""
    try:
        return unquote(text, errors="strict")
    except UnicodeDecodeError as error:
        raise BadTarget(f"{text!r} is not UTF-8 when decoded") from error


def split_path(path: str) -> list[str]:
    """The decoded segments of an absolute path; ``/`` has one, which is empty."""
    if not path.startswith("/"):
        raise BadTarget(f"a path starts with a slash, unlike {path!r}")
    return [decode(segment) for segment in path[1:].split("/")]


def join_path(segments: Iterable[str]) -> str:
    """The absolute path that has these segments; the inverse of :func:`split_path`."""
    return "/" + "/".join(quote(segment, safe=_SEGMENT_SAFE) for segment in segments)
