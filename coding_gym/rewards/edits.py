"""What a patch changes, token by token, at its place in the base tree."""

import re
from collections import Counter
from dataclasses import dataclass, field

from coding_gym.patch import Patch
from coding_gym.rewards.matching import Effort, matching_blocks
from coding_gym.rewards.runs import changed_runs

MAX_EDIT_CHARS = 500_000
"""Characters of a patch that is read token by token."""

_MAX_COMPARISONS = 2_000_000
_TOKEN = re.compile(r"\w+|[^\w\s]")
# Where the white space in front of a line says what the line belongs to.
_INDENTED = (".py", ".pyi", ".yaml", ".yml")


@dataclass(slots=True)
class FileEdit:
    """The tokens by which a file differs from the base.

    Attributes:
        removed: How often a token is gone, by its line in the base and itself.
        added: How often a token is new, by the one before it in the new text and itself.
        places: Lines of the base where something changes, each with the tokens added there.
    """

    removed: Counter[tuple[int, str]] = field(default_factory=Counter)
    added: Counter[tuple[str, str]] = field(default_factory=Counter)
    places: dict[int, Counter[tuple[str, str]]] = field(default_factory=dict)

    @property
    def size(self) -> int:
        """Number of tokens that are gone or new."""
        return self.removed.total() + self.added.total()


def edits(patch: Patch) -> dict[str, FileEdit]:
    r"""Returns what a patch changes, by the path of the file.

    The two sides of each run of changed lines are compared token by token (words, and all other
    characters that are not white space), so that what stays in a changed line is no change, and
    white space is none. In Python and YAML the depth of a line counts as a token.

    Raises:
        PatchError: The patch cannot be read.

    >>> patch = "diff --git a/x.c b/x.c\n--- a/x.c\n+++ b/x.c\n@@ -1 +1 @@\n-a + b\n+a  * b \n"
    >>> edit = edits(Patch(patch))["x.c"]
    >>> dict(edit.removed), dict(edit.added)
    ({(1, '+'): 1}, {('a', '*'): 1})
    """
    effort = Effort(_MAX_COMPARISONS)
    found: dict[str, FileEdit] = {}
    for change in patch.files:
        edit = found.setdefault(change.path, FileEdit())
        for start, old, new in changed_runs(change):
            _add(edit, start, old, new, effort, keeps_depth=change.path.endswith(_INDENTED))
    return found


def _add(
    edit: FileEdit, start: int, old: list[str], new: list[str], effort: Effort, *, keeps_depth: bool
) -> None:
    """Adds one run of changed lines to what is known of a file."""
    before = [(start + n, t) for n, line in enumerate(old) for t in _tokens(line, keeps_depth)]
    after = [token for line in new for token in _tokens(line, keeps_depth)]
    same = matching_blocks([token for _, token in before], after, effort, autojunk=False) or []
    kept = {i + n for i, _, size in same for n in range(size)}
    edit.removed.update(place for i, place in enumerate(before) if i not in kept)
    partner = {j + n: i + n for i, j, size in same for n in range(size)}
    line = start
    for j, token in enumerate(after):
        if j in partner:
            line = before[partner[j]][0]
            continue
        pair = (after[j - 1] if j else "", token)
        edit.added[pair] += 1
        edit.places.setdefault(line, Counter())[pair] += 1
    for line, _ in (place for i, place in enumerate(before) if i not in kept):
        edit.places.setdefault(line, Counter())


def _tokens(line: str, keeps_depth: bool) -> list[str]:
    tokens = _TOKEN.findall(line)
    if keeps_depth and tokens:
        expanded = line.expandtabs()
        tokens.insert(0, " " * (len(expanded) - len(expanded.lstrip())))
    return tokens
