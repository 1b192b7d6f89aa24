"""The tools of ``codex`` that look at files and change them; each returns a mapping."""

from typing import Any

from coding_gym.calls import ToolCall
from coding_gym.tools import editing, given, listing
from coding_gym.tools.answers import Refusal, name_of
from coding_gym.tools.codex_prompt import (
    DEFAULT_DEPTH,
    DEFAULT_LINES,
    MAX_DEPTH,
    MAX_FILES,
    MAX_LINES,
    MAX_READ_CHARS,
    MAX_ROWS,
)
from coding_gym.tools.commands import elided
from coding_gym.tools.files import TextFile
from coding_gym.tools.patch_reading import read_patch
from coding_gym.tools.patch_writing import apply_all
from coding_gym.tools.protocol import ToolContext


def list_files(call: ToolCall, context: ToolContext) -> dict[str, Any]:
    """Lists the files below a folder."""
    path = given.text(call, "path", ".")
    place = editing.find_place(context, path)
    if not listing.is_folder(context, place):
        return {"files": [relative(context, place)], "truncated": False}
    found, is_more = listing.entries(
        context,
        path,
        place,
        skip=listing.SKIP_IGNORED,
        tests="-type f",
        max_entries=MAX_FILES,
    )
    base = relative(context, place)
    files = [entry.path if base == "." else f"{base}/{entry.path}" for entry in found]
    return {"files": files, "truncated": is_more}


def inspect_tree(call: ToolCall, context: ToolContext) -> dict[str, Any]:
    """Shows the tree below a folder, two blanks per level."""
    path = given.text(call, "path", ".")
    depth = min(max(given.whole_number(call, "max_depth", DEFAULT_DEPTH), 1), MAX_DEPTH)
    place = editing.find_place(context, path)
    if not listing.is_folder(context, place):
        raise Refusal(f"{name_of(path)} is a file, not a folder")
    found, is_more = listing.entries(
        context,
        path,
        place,
        skip=listing.SKIP_IGNORED,
        tests=f"-maxdepth {depth}",
        max_entries=MAX_ROWS,
    )
    rows = [f"{'  ' * (e.depth - 1)}{e.name}{'/' if e.is_folder else ''}" for e in found]
    return {"tree": rows, "truncated": is_more}


def read_file(call: ToolCall, context: ToolContext) -> dict[str, Any]:
    """Returns numbered lines of a file."""
    first = max(given.whole_number(call, "start_line", 1), 1)
    count = min(max(given.whole_number(call, "max_lines", DEFAULT_LINES), 1), MAX_LINES)
    file = editing.open_file(context, given.text(call, "path"))
    lines = editing.lines_of(file.text)
    wanted = lines[first - 1 : first - 1 + count]
    rows = [f"{first + i}: {editing.cut_line(line)}" for i, line in enumerate(wanted)]
    return {
        "path": relative(context, file.place),
        "start_line": first,
        "end_line": first + len(wanted) - 1,
        "total_lines": len(lines),
        "content": elided("\n".join(rows), MAX_READ_CHARS),
    }


def apply_patch(call: ToolCall, context: ToolContext) -> dict[str, Any]:
    """Applies a patch, all of it or nothing."""
    patch = given.text(call, "patch")
    if not patch.strip():
        raise Refusal("`patch` must not be empty")
    return {"applied": True, "files": apply_all(context, read_patch(patch))}


def replace_text(call: ToolCall, context: ToolContext) -> dict[str, Any]:
    """Replaces a text, everywhere or so many times from the top."""
    path, old, new = (given.text(call, name) for name in ("path", "old_text", "new_text"))
    count = given.whole_number(call, "count", 0)
    if not old:
        raise Refusal("`old_text` must not be empty")
    if count < 0:
        raise Refusal(f"`count` must be at least 0, got {count}")
    file = editing.open_file(context, path)
    old, found = editing.occurrences(file, old)
    if not found:
        raise Refusal(f"`old_text` does not occur in {name_of(path)}")
    num_there = file.text.count(old)
    num_replaced = min(count, num_there) if count else num_there
    growth = (len(new) - len(old)) * num_replaced
    if len(file.text) + growth > editing.MAX_FILE_BYTES:
        raise Refusal(f"{name_of(path)} would be larger than {editing.MAX_FILE_BYTES >> 20} MiB")
    new = editing.in_place_of(file, old, new)
    editing.save(context.sandbox, file, file.text.replace(old, new, num_replaced))
    return {"path": relative(context, file.place), "replaced": num_replaced}


def write_file(call: ToolCall, context: ToolContext) -> dict[str, Any]:
    """Writes a whole file, or adds to its end."""
    path, content = given.text(call, "path"), given.text(call, "content")
    appends = given.truth(call, "append", default=False)
    place = editing.find_place(context, path, may_be_new=True)
    before = editing.read_if_there(context.sandbox, path, place)
    if appends and before is not None:
        old = TextFile.decode(before)
        if old.is_binary:
            raise Refusal(f"{name_of(path)} is a binary file; use a command instead")
        data = old.encode(old.text + content)
    else:
        data = editing.written_as(before, content)
    editing.write_bytes(context.sandbox, path, place, data)
    return {
        "append": appends,
        "bytes": len(data),
        "created": before is None,
        "path": relative(context, place),
    }


def relative(context: ToolContext, place: str) -> str:
    """Returns a place as a path relative to the workspace."""
    root = editing.find_place(context, ".")
    return place.removeprefix(root).lstrip("/") or "."
