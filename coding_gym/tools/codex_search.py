"""The search of ``codex``: ripgrep's answers from grep and find, which every sandbox has."""

from typing import Any

from coding_gym.calls import ToolCall
from coding_gym.tools import editing, given
from coding_gym.tools.answers import Refusal, name_of
from coding_gym.tools.codex_files import relative
from coding_gym.tools.codex_prompt import MAX_MATCH_CHARS, MAX_MATCHES
from coding_gym.tools.files import shown
from coding_gym.tools.listing import SKIP_IGNORED
from coding_gym.tools.protocol import ToolContext

_TIMEOUT_S = 30.0
_BAD_PATTERN = 2
# Lines are cut before they leave the sandbox, long enough for a path and what is shown of them.
_SEARCH = """\
set -f
echo x | grep -q -P x 2>/dev/null && kind=-P || kind=-E
said=$(grep "$kind" $CASE -e "$PATTERN" </dev/null 2>&1)
[ $? -le 1 ] || { printf %s "$said" | head -c 300; exit 2; }
cd -- "$ROOT" || exit 3
find "$BASE" $TESTS -type f -printf '%p\\0' 2>/dev/null | tr / '\\001' |
    LC_ALL=C sort -z | tr '\\001' / |
    xargs -0 -r grep "$kind" $CASE -nIHZs -e "$PATTERN" -- | cut -b 1-6000 | head -n "$NUM"
exit 0"""


def rg(call: ToolCall, context: ToolContext) -> dict[str, Any]:
    """Returns the lines that match a regular expression."""
    pattern, path = given.text(call, "pattern"), given.text(call, "path", ".")
    case = "" if given.truth(call, "case_sensitive", default=True) else "-i"
    if not pattern or "\0" in pattern or "\n" in pattern or len(pattern) > 1000:
        raise Refusal("`pattern` must be one line of 1 to 1000 characters, without a NUL")
    base = relative(context, editing.find_place(context, path))
    result = context.sandbox.run(
        _SEARCH,
        timeout_s=min(_TIMEOUT_S, context.command_timeout_s),
        env={
            "BASE": "." if base == "." else f"./{base}",
            "ROOT": context.sandbox.workdir,
            "CASE": case,
            "NUM": str(MAX_MATCHES + 1),
            "PATTERN": pattern,
            "TESTS": SKIP_IGNORED,
        },
    )
    if result.timed_out:
        raise Refusal("the search took too long; narrow the path or the pattern")
    if result.exit_code == _BAD_PATTERN:
        raise Refusal(f"invalid `pattern`: {result.output.removeprefix('grep: ')}")
    if not result.ok:
        raise Refusal(f"{name_of(path)} cannot be searched")
    matches = [match for row in result.output.split("\n") if (match := _match(row))]
    return {"matches": matches[:MAX_MATCHES], "truncated": len(matches) > MAX_MATCHES}


def _match(row: str) -> dict[str, Any] | None:
    path, nul, rest = row.partition("\0")
    number, colon, text = rest.partition(":")
    if not nul or not colon or not number.isdecimal():  # the rest of a name with a line feed
        return None
    line = text.rstrip("\r")[:MAX_MATCH_CHARS]
    return {"path": shown(path.removeprefix("./")), "line": int(number), "text": line}
