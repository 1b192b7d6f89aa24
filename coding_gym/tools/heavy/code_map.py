"""The tools that know names: ``repo_map``, ``find_definition`` and ``find_references``."""

from typing import Any

from coding_gym.calls import ToolCall
from coding_gym.tools.call_arguments import text, whole_number
from coding_gym.tools.programs import ask, int_of, rows_of, strings_of, text_of
from coding_gym.tools.toolset import Refusal, ToolContext, quoted

CHARS_PER_TOKEN = 4
MAX_TOKENS = 8000
_TOKENS, _MIN_TOKENS = 1000, 100
_MAX_PATHS = 20
_MAX_NAME_CHARS = 200
_MAX_PLACES = 30
_MAX_SIMILAR = 5


def repo_map(call: ToolCall, context: ToolContext) -> str:
    """Returns the most used definitions, as many as there is room for."""
    max_tokens = whole_number(call, "max_tokens", _TOKENS)
    if not _MIN_TOKENS <= max_tokens <= MAX_TOKENS:
        raise Refusal(
            f"`max_tokens` must be between {_MIN_TOKENS} and {MAX_TOKENS}, got {max_tokens}"
        )
    paths = _paths(call)
    room = max_tokens * CHARS_PER_TOKEN
    reply = ask(context, "repo_map", {"paths": paths, "max_chars": room})
    if reply.problem:
        raise Refusal(f"the repository could not be mapped: {reply.problem}")
    drawn = text_of(reply.value.get("text"), room)
    shown, total, files, left_out = (
        int_of(reply.value.get(key)) for key in ("shown", "definitions", "files", "left_out")
    )
    where = "" if not paths else " below the paths given"
    if not total:
        return f"No definitions were found in {files} source files{where}.{_left_out(left_out)}"
    return (
        f"{drawn}({shown} of {total} definitions in {files} source files{where}, the most used "
        f"ones.{_left_out(left_out)})"
    )


def find_definition(call: ToolCall, context: ToolContext) -> str:
    """Returns the places where a name is defined."""
    return _find(call, context, uses=False)


def find_references(call: ToolCall, context: ToolContext) -> str:
    """Returns the lines that use a name."""
    return _find(call, context, uses=True)


def _find(call: ToolCall, context: ToolContext, *, uses: bool) -> str:
    name = text(call, "name").strip().removesuffix("()")
    if not name or len(name) > _MAX_NAME_CHARS or any(c.isspace() for c in name):
        raise Refusal(f"`name` must be the name of one thing, such as parse, got {quoted(name)}")
    request = {"name": name, "uses": uses, "max_places": _MAX_PLACES}
    reply = ask(context, "lookup", request)
    if reply.problem:
        raise Refusal(f"the repository could not be searched: {reply.problem}")
    places = rows_of(reply.value.get("places"))[:_MAX_PLACES]
    if not places:
        raise Refusal(_nothing(name, reply.value.get("similar"), uses=uses))
    lines = [_place(place, uses=uses) for place in places]
    if reply.value.get("more") is True:
        lines.append(f"(only the first {len(lines)} are shown)")
    return "\n".join(lines)


def _place(place: dict[str, Any], *, uses: bool) -> str:
    kind = "" if uses else f" ({text_of(place.get('kind'))})"
    line = int_of(place.get("line"))
    return f"{text_of(place.get('path'))}:{line}{kind}: {text_of(place.get('text'))}"


def _nothing(name: str, similar: object, *, uses: bool) -> str:
    what = "is used nowhere" if uses else "is defined nowhere"
    names = strings_of(similar)[:_MAX_SIMILAR]
    hint = f"; there are {', '.join(names)}" if names else ""
    return f"{quoted(name)} {what} in the source files that can be read{hint}"


def _paths(call: ToolCall) -> list[str]:
    given: Any = call.arguments.get("paths")
    if given is None:
        return []
    paths = [given] if isinstance(given, str) else given
    if not isinstance(paths, list) or not all(isinstance(path, str) for path in paths):
        raise Refusal(f"`paths` must be a list of paths, got {quoted(given)}")
    if len(paths) > _MAX_PATHS:
        raise Refusal(f"`paths` must name at most {_MAX_PATHS} paths, got {len(paths)}")
    return paths


def _left_out(count: int) -> str:
    if not count:
        return ""
    what = "file was" if count == 1 else "files were"
    return f" {count} {what} not read: too large, no text, or too many."
