"""How SWE-bench's logs spell pytest's node ids: they were read from its summary lines."""

import re
from collections.abc import Iterator

# What swebench 4.1 (`harness/log_parsers/python.py`) makes of lines before it cuts them: colour
# codes go, and with them what only looks like one, and the names of mouse buttons become numbers.
_COLOUR = re.compile(r"\[\d+m")
_BUTTONS = {"MouseButton.LEFT": "1", "MouseButton.RIGHT": "3"}
_PARAMETERS = re.compile(r"(.*?)\[(.*)\]")


def log_spellings(node_id: str) -> set[str]:
    """Returns the other ids that rows may have for a test with parameters; none for other tests.

    An id ends at the first white space (``test_x[not a]`` is ``test_x[not``). Of parameters that
    are one absolute path, the projects pydicom, pylint and requests keep the last part.
    """
    if "[" not in node_id:
        return set()
    return {
        spelling
        for text in _as_read(node_id)
        for cut in text.split(maxsplit=1)[:1]
        for spelling in (cut, _with_short_path(cut))
    } - {node_id}


def _as_read(node_id: str) -> Iterator[str]:
    yield node_id
    yield _COLOUR.sub("", node_id)
    text = node_id
    for button, number in _BUTTONS.items():
        text = text.replace(button, number)
    yield text


def _with_short_path(node_id: str) -> str:
    match = _PARAMETERS.search(node_id)
    if match is None:
        return node_id
    test, parameters = match.groups()
    if parameters.startswith("/") and not parameters.startswith("//") and "*" not in parameters:
        parameters = "/" + parameters.rpartition("/")[2]
    return f"{test}[{parameters}]"
