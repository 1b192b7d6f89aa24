"""A candidate as literal search-and-replace, the form in which policies edit files."""

from coding_gym.repair.source import Edit


def search_and_replace(text: str, edit: Edit) -> tuple[str, str]:
    """Returns the shortest whole lines around an edit that occur once, and their new text.

    Args:
        text: The file as it is.
        edit: What to change in it.
    """
    start = text.rfind("\n", 0, edit.start) + 1
    is_whole_line = edit.start < edit.end and text[edit.end - 1] == "\n"
    end = edit.end if is_whole_line else _line_end(text, edit.end)
    while text.count(text[start:end]) > 1:
        if end < len(text):
            end = _line_end(text, end + 1)
        if text.count(text[start:end]) > 1 and start:
            start = text.rfind("\n", 0, start - 1) + 1
    changed = text[start : edit.start] + edit.replacement + text[edit.end : end]
    return text[start:end], changed


def _line_end(text: str, offset: int) -> int:
    found = text.find("\n", offset)
    return len(text) if found < 0 else found
