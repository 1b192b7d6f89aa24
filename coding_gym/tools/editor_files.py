"""The commands of ``str_replace_editor``; each returns what the policy is told."""

from coding_gym.calls import ToolCall
from coding_gym.text.truncate import head
from coding_gym.tools import editing, editor_history, given, listing
from coding_gym.tools.answers import Refusal, name_of
from coding_gym.tools.editing import OpenedFile
from coding_gym.tools.editor_prompt import CLIPPED, MAX_LISTED, MAX_REPLY_CHARS
from coding_gym.tools.files import TextFile
from coding_gym.tools.own_commands import run_own
from coding_gym.tools.protocol import ToolContext

_NUM_CONTEXT_LINES = 4
_REVIEW = "Review the changes and make sure they are as expected. Edit the file again if necessary."


def view(call: ToolCall, context: ToolContext) -> str:
    """Shows a file's lines, or what a folder holds two levels deep."""
    path, lines = given.text(call, "path"), given.line_range(call, "view_range")
    place = editing.find_place(context, path)
    if listing.is_folder(context, place):
        if lines is not None:
            raise Refusal("`view_range` is for files, and this path is a folder")
        return _folder(path, place, context)
    text = editing.lines_of(editing.open_file(context, path).text)
    if lines is None:
        return _cat(text, path, 1)
    first, last = lines
    last = len(text) if last == -1 else last
    if not 1 <= first <= max(len(text), 1):
        raise Refusal(
            f"Invalid `view_range`: {list(lines)}. Its first element must be a line of the file, "
            f"1 to {len(text)}"
        )
    if last < first:
        raise Refusal(
            f"Invalid `view_range`: {list(lines)}. Its second element must be at least the first, "
            "or -1 for the end"
        )
    return _cat(text[first - 1 : last], path, first)


def _folder(path: str, place: str, context: ToolContext) -> str:
    found, is_more = listing.entries(
        context,
        path,
        place,
        skip=listing.SKIP_HIDDEN,
        tests="-maxdepth 2",
        max_entries=MAX_LISTED,
    )
    base = place.rstrip("/")
    rows = [f"{base}/{entry.path}{'/' if entry.is_folder else ''}" for entry in found]
    more = f"\n[only the first {MAX_LISTED} are listed]" if is_more else ""
    title = (
        f"Here's the files and directories up to 2 levels deep in {name_of(path)}, "
        "excluding hidden items:"
    )
    return head("\n".join([title, f"{base}/", *rows]) + more, MAX_REPLY_CHARS, CLIPPED)


def create(call: ToolCall, context: ToolContext) -> str:
    """Makes a file that does not exist yet."""
    path, text = given.text(call, "path"), given.text(call, "file_text")
    place = editing.find_place(context, path, may_be_new=True)
    if run_own(context, 'test -e "$PLACE"', env={"PLACE": place}).ok:
        raise Refusal(
            f"File already exists at: {name_of(path)}. Cannot overwrite files using command "
            "`create`; use `str_replace` or `insert`"
        )
    data = text.encode()
    editing.write_bytes(context.sandbox, path, place, data)
    editor_history.remember(context.state, place, before=None, mode="", after=data)
    return f"File created successfully at: {name_of(path)}"


def str_replace(call: ToolCall, context: ToolContext) -> str:
    """Replaces a text that occurs exactly once."""
    path, old = given.text(call, "path"), given.text(call, "old_str")
    new = given.text(call, "new_str", "")
    if not old:
        raise Refusal("`old_str` must not be empty; `insert` puts lines in")
    if old == new:
        raise Refusal("No replacement was performed. `new_str` and `old_str` must be different.")
    file = editing.open_file(context, path)
    old, found = editing.occurrences(file, old)
    if not found:
        raise Refusal(
            f"No replacement was performed, old_str did not appear verbatim in {name_of(path)}."
        )
    if len(found) > 1:
        lines = sorted({editing.line_of(file.text, at) for at in found[:10]})
        raise Refusal(
            f"No replacement was performed. Multiple occurrences of old_str in lines {lines}. "
            "Please ensure it is unique."
        )
    new = editing.in_place_of(file, old, new)
    first = editing.line_of(file.text, found[0])
    return _edited(file, file.text.replace(old, new, 1), first, first + new.count("\n"), context)


def insert(call: ToolCall, context: ToolContext) -> str:
    """Puts lines behind a line."""
    path, after = given.text(call, "path"), given.whole_number(call, "insert_line")
    new = given.text(call, "new_str")
    file = editing.open_file(context, path)
    lines = file.text.split("\n")
    num_lines = len(editing.lines_of(file.text))
    if not 0 <= after <= num_lines:
        raise Refusal(
            f"Invalid `insert_line` parameter: {after}. It must be from 0 to {num_lines}, the "
            "number of lines of the file"
        )
    if file.content.newline == "\n" and lines[0].endswith("\r"):
        new = new.replace("\r\n", "\n").replace("\n", "\r\n") + "\r"
    # As a line each: one line feed at its end is the policy's way to say so, not an empty line.
    added = new.removesuffix("\n").split("\n")
    text = "\n".join(lines[:after] + added + lines[after:])
    return _edited(file, text, after + 1, after + len(added), context)


def undo_edit(call: ToolCall, context: ToolContext) -> str:
    """Takes back the last edit of a file, as far as it is remembered."""
    path = given.text(call, "path")
    place = editing.find_place(context, path, may_be_new=True)
    version = editor_history.take_back(context.state, place)
    if version is None:
        num_dropped = editor_history.num_dropped(context.state, place)
        why = f"; {num_dropped} older ones were not kept" if num_dropped else ""
        raise Refusal(f"No edit history found for {name_of(path)}{why}.")
    try:
        now = editing.read_if_there(context.sandbox, path, place)
        mode = _mode(context, place)
        _put(context, path, place, version, mode)
    except Refusal:
        editor_history.put_back(context.state, place, version)
        raise
    said = f"Last edit to {name_of(path)} undone successfully."
    if not version.is_followed_by(now, mode):
        said += " What was changed in it since, by other means, is undone with it."
    if version.data is None:
        return f"{said} The file is gone again."
    return f"{said} {_cat(editing.lines_of(_text(version.data)), path, 1)}"


def _put(
    context: ToolContext, path: str, place: str, version: editor_history.Version, mode: str
) -> None:
    """Brings back a version of a file whose mode is another one now, or "" where it is gone."""
    env = {"PLACE": place, "MODE": version.mode}
    if version.data is not None:
        editing.write_bytes(context.sandbox, path, place, version.data)
        is_same = not version.mode or version.mode == mode
        if not is_same and not run_own(context, 'chmod -- "$MODE" "$PLACE"', env=env).ok:
            raise Refusal(f"the mode of {name_of(path)} cannot be set")
    elif not run_own(context, 'rm -f -- "$PLACE"', env=env).ok:
        raise Refusal(f"{name_of(path)} cannot be removed")


def _mode(context: ToolContext, place: str) -> str:
    """Returns a file's mode as chmod takes it, or "" where there is none."""
    found = run_own(context, 'stat -c %a -- "$PLACE"', env={"PLACE": place})
    return found.output.strip() if found.ok else ""


def _text(data: bytes) -> str:
    return TextFile.decode(data).text


def _edited(file: OpenedFile, text: str, first: int, last: int, context: ToolContext) -> str:
    """Writes a file's new text and shows the lines that are new, with some around them."""
    after = editing.save(context.sandbox, file, text)
    mode = _mode(context, file.place)
    editor_history.remember(context.state, file.place, before=file.data, mode=mode, after=after)
    begin = max(first - _NUM_CONTEXT_LINES, 1)
    snippet = editing.lines_of(text)[begin - 1 : last + _NUM_CONTEXT_LINES]
    name = name_of(file.path)
    return (
        f"The file {name} has been edited. {_cat(snippet, f'a snippet of {name}', begin)}{_REVIEW}"
    )


def _cat(lines: list[str], what: str, first: int) -> str:
    # With its number each line has more than seven characters: no more can be shown.
    rows = editing.numbered(lines[: MAX_REPLY_CHARS // 7], first)
    shown = head(rows, MAX_REPLY_CHARS, CLIPPED)
    return f"Here's the result of running `cat -n` on {name_of(what)}:\n{shown}\n"
