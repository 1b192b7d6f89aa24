"""Whether a file's new text has errors of syntax that the old one has not, asked in the sandbox."""

from pathlib import PurePosixPath

from coding_gym.tools.files import run_own
from coding_gym.tools.programs import ask, int_of, rows_of, text_of
from coding_gym.tools.toolset import ToolContext

_OWN = {".py": "python", ".pyi": "python", ".json": "json"}
# Each reads the text on standard input and only parses it; the name of the program is its first
# word. A .js file may be a script or a module.
_FOREIGN = {
    ".js": "node --check - || node --check --input-type=module -",
    ".cjs": "node --check -",
    ".mjs": "node --check --input-type=module -",
    ".sh": "bash -n",
    ".rb": "ruby -c",
    ".php": "php -l",
    ".go": "gofmt -e",
}
_TIMEOUT_S = 20.0
_MAX_MESSAGE_CHARS = 500
_NEIGHBOURS = 3  # lines shown on each side of an error


def syntax_error(context: ToolContext, path: str, old: str | None, new: str) -> tuple[str, str]:
    """Returns what is wrong with a file's new text.

    Args:
        context: The episode.
        path: The file, whose suffix says how it is checked.
        old: Its text so far, or None where it is new.
        new: The text that is to be written.

    Returns:
        Why the new text must not be written, or ""; and a remark on the check, or "".

    Raises:
        SandboxError: The sandbox is closed or died.
    """
    suffix = PurePosixPath(path).suffix.lower()
    if suffix in _OWN:
        return _own(context, _OWN[suffix], old, new)
    if suffix in _FOREIGN:
        return _foreign(context, _FOREIGN[suffix], old, new)
    return "", ""


def _own(context: ToolContext, language: str, old: str | None, new: str) -> tuple[str, str]:
    texts = [new] if old is None else [new, old]
    reply = ask(context, "syntax", {"texts": texts, "language": language})
    errors = reply.value.get("errors")
    if reply.problem or not isinstance(errors, list) or len(errors) != len(texts):
        return "", f"(its syntax was not checked: {reply.problem or 'no reply'})"
    found = rows_of(errors[:1])
    if not found:
        return "", ""
    number, message = int_of(found[0].get("line")), text_of(found[0].get("message"))
    said = f"{message} (line {number})" if number else message
    if rows_of(errors[1:]):  # no edit could be made at all if the first one had to mend it all
        return "", f"(the file has a syntax error, as before the edit: {said})"
    return "\n".join([said, *_around(new, number)]), ""


def _around(text: str, number: int) -> list[str]:
    if number < 1:
        return []
    lines = text.split("\n")
    first = max(1, number - _NEIGHBOURS)
    return [
        f"{'>' if n == number else ' '}{n:6}  {lines[n - 1][:200]}"
        for n in range(first, min(number + _NEIGHBOURS, len(lines)) + 1)
    ]


def _foreign(context: ToolContext, command: str, old: str | None, new: str) -> tuple[str, str]:
    program = command.partition(" ")[0]
    if not run_own(context, f"command -v {program}").ok:
        return "", f"(its syntax was not checked: there is no {program} here)"
    said = _complaint(context, command, new)
    if not said:
        return "", ""
    if old is not None and _complaint(context, command, old):
        return "", f"(the file has a syntax error, as before the edit: {said.splitlines()[0]})"
    return said, ""


def _complaint(context: ToolContext, command: str, text: str) -> str:
    # A pipe, so that the second of two programs reads it too.
    source = 'source=$(mktemp) && cat > "$source" && trap \'rm -f "$source"\' EXIT && '
    words = " || ".join(f'{part} < "$source"' for part in command.split(" || "))
    done = run_own(
        context,
        f"{source}{{ {words}; }} 2>&1 >/dev/null",
        bound_s=_TIMEOUT_S,
        stdin=text.encode("utf-8", "surrogateescape"),
    )
    if done.ok or done.timed_out:
        return ""
    return done.output.strip()[:_MAX_MESSAGE_CHARS] or "it does not parse"
