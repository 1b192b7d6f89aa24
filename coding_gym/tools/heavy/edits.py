"""The tools that change files: ``edit`` and ``create``, which leave no new syntax error behind."""

from coding_gym.calls import ToolCall
from coding_gym.tools.call_arguments import text
from coding_gym.tools.files import (
    OpenedFile,
    find_place,
    in_place_of,
    line_of,
    lines_of,
    numbered,
    occurrences,
    open_file,
    run_own,
    save,
    write_bytes,
)
from coding_gym.tools.heavy.lint import syntax_error
from coding_gym.tools.toolset import Refusal, ToolContext, name_of

_NEIGHBOURS = 2  # lines shown on each side of an edit
_MAX_SHOWN_LINES = 40
_MAX_SIMILAR = 3


def edit(call: ToolCall, context: ToolContext) -> str:
    """Replaces the only occurrence of a text, and shows the lines as they are then."""
    path, old, new = (text(call, name) for name in ("path", "old", "new"))
    if not old:
        raise Refusal("`old` must not be empty; a new file is made with `create`")
    if old == new:
        raise Refusal("`old` and `new` are the same")
    file = open_file(context, path)
    old, positions = occurrences(file, old)
    if not positions:
        raise Refusal(f"`old` does not occur in {name_of(path)}{_similar(file, old)}")
    if len(positions) > 1:
        lines = ", ".join(str(line_of(file.text, p)) for p in positions[:10])
        raise Refusal(
            f"`old` occurs {len(positions)} times in {name_of(path)}, at lines {lines}; include "
            "more of the lines around it"
        )
    start = positions[0]
    new = in_place_of(file, old, new)
    changed = file.text[:start] + new + file.text[start + len(old) :]
    error, remark = syntax_error(context, file.place, file.text, changed)
    if error:
        raise Refusal(f"not edited: it would leave a syntax error in {name_of(path)}\n{error}")
    save(context, file, changed)
    shown = _around(changed, start, start + len(new))
    return "\n".join(part for part in (f"{name_of(path)} was edited:", shown, remark) if part)


def create(call: ToolCall, context: ToolContext) -> str:
    """Writes a file that is not there yet."""
    path, content = text(call, "path"), text(call, "content")
    place = find_place(context, path, may_be_new=True)
    taken = run_own(context, '[ -e "$FILE" ] || [ -L "$FILE" ]', env={"FILE": place})
    if taken.ok:
        raise Refusal(f"{name_of(path)} exists already; change it with `edit`")
    error, remark = syntax_error(context, place, None, content)
    if error:
        raise Refusal(f"not created: there is a syntax error in it\n{error}")
    write_bytes(context, path, place, content.encode())
    num_lines = len(lines_of(content))
    said = f"{name_of(path)} was created, {num_lines} line{'' if num_lines == 1 else 's'}."
    return f"{said}\n{remark}" if remark else said


def _around(text: str, start: int, end: int) -> str:
    """Returns the lines between two positions, and some around them, with their numbers."""
    lines = lines_of(text)
    first = max(1, line_of(text, start) - _NEIGHBOURS)
    last = min(len(lines), line_of(text, end) + _NEIGHBOURS)
    shown = numbered(lines[first - 1 : min(last, first + _MAX_SHOWN_LINES - 1)], first)
    left_out = last - first + 1 - _MAX_SHOWN_LINES
    return f"{shown}\n({left_out} more lines)" if left_out > 0 else shown


def _similar(file: OpenedFile, wanted: str) -> str:
    """Returns where lines stand that differ from the first one wanted only in white space."""
    first = next((line.split() for line in wanted.split("\n") if line.strip()), None)
    if first is None:
        return ""
    lines = lines_of(file.text)
    found = [(n, line) for n, line in enumerate(lines, 1) if line.split() == first]
    if not found:
        return ""
    shown = "\n".join(numbered([line], n) for n, line in found[:_MAX_SIMILAR])
    return f"; its first line stands here, perhaps with other white space or other lines:\n{shown}"
