"""What folders of the workspace hold, as tools list it: sorted, bounded, links not followed."""

from dataclasses import dataclass

from coding_gym.tools.answers import Refusal, name_of
from coding_gym.tools.files import shown
from coding_gym.tools.own_commands import run_own
from coding_gym.tools.protocol import ToolContext

# Of tools, not of the project.
IGNORED = (
    ".git",
    "__pycache__",
    ".pytest_cache",
    ".mypy_cache",
    ".ruff_cache",
    "node_modules",
    ".venv",
    "venv",
)
SKIP_IGNORED = "( " + " -o ".join(f"-name {name}" for name in IGNORED) + " ) -prune -o"
SKIP_HIDDEN = "-name .* -prune -o"

_MAX_OUTPUT_BYTES = 2 << 20
# The tests of find are words of our own, split at blanks; `set -f` keeps their patterns as they
# are. A folder sorts right before what is in it, as slashes sort below all else.
_LIST = """\
set -f
cd -- "$BASE" || exit 3
find . -mindepth 1 $TESTS -printf '%y %d %P\\0' 2>/dev/null | tr / '\\001' |
    LC_ALL=C sort -z -k 3 | head -z -n "$NUM" | tr '\\001' /"""


@dataclass(frozen=True, slots=True)
class Entry:
    """Something in a folder.

    Attributes:
        path: Relative to the folder that was listed.
        depth: How deep below it, from 1.
        is_folder: Whether it is a folder.
    """

    path: str
    depth: int
    is_folder: bool

    @property
    def name(self) -> str:
        """The last part of its path."""
        return self.path.rpartition("/")[2]


def is_folder(context: ToolContext, place: str) -> bool:
    """Returns whether a place is a folder."""
    return run_own(context, 'test -d "$PLACE"', env={"PLACE": place}).ok


def entries(
    context: ToolContext, path: str, place: str, *, skip: str, tests: str = "", max_entries: int
) -> tuple[list[Entry], bool]:
    """Returns what is in a folder, sorted by path, and whether there is more.

    Args:
        context: The episode.
        path: The folder as the policy gave it, for what is said.
        place: Where it is, links resolved.
        skip: `SKIP_IGNORED` or `SKIP_HIDDEN`.
        tests: More tests of ``find``, such as ``-type f``.
        max_entries: How many are returned.

    Raises:
        Refusal: It cannot be listed.
        SandboxError: The sandbox is closed or died.
    """
    result = run_own(
        context,
        _LIST,
        max_output_bytes=_MAX_OUTPUT_BYTES,
        env={"BASE": place, "NUM": str(max_entries + 1), "TESTS": _ordered(skip, tests)},
    )
    if not result.ok:
        why = "it took too long" if result.timed_out else "permission denied"
        raise Refusal(f"{name_of(path)} cannot be listed: {why}")
    found = []
    for row in result.output.split("\0")[:-1]:
        kind, _, rest = row.partition(" ")
        depth, _, name = rest.partition(" ")
        if depth.isdecimal():
            found.append(Entry(shown(name), int(depth), kind == "d"))
    return found[:max_entries], len(found) > max_entries


def _ordered(skip: str, tests: str) -> str:
    """Puts ``-maxdepth`` in front, where find wants it."""
    words = tests.split()
    depth = words[:2] if words[:1] == ["-maxdepth"] else []
    return " ".join([*depth, skip, *words[len(depth) :]])
