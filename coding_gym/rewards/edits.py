"""Rewards that compare which lines, tokens and functions of the base tree two patches change.

``gold`` is the reference patch, ``patch`` the one to score.
"""

import ast
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from difflib import Match

from coding_gym import syntax
from coding_gym.errors import PatchError
from coding_gym.patch import FileChange, Patch
from coding_gym.rewards.similarity import WorkBudget, matching_blocks

MAX_EDIT_CHARS = 500_000
"""Characters of a patch that is read token by token."""

Run = tuple[int, list[str], list[str]]
"""A run of changed lines: its first line in the base, the removed lines, and the added ones."""

_MAX_COMPARISONS = 8_000_000  # of tokens or lines, for one pair of patches
_TOKEN = re.compile(r"\w+|[^\w\s]")
# Files in which the depth of a line decides what it belongs to.
_INDENTED = (".py", ".pyi", ".yaml", ".yml")
_NEAR_LINES = 10
_RECALL_WEIGHT = 4  # beta squared of F2: a missing token costs as much as four unwanted ones
_PYTHON = (".py", ".pyi")
_HUNK = re.compile(r"^@@ -\d+(?:,\d+)? \+\d+(?:,\d+)? @@ ?(.*)$", re.MULTILINE)


def changed_runs(change: FileChange) -> Iterator[Run]:
    r"""Yields every run of changed lines of a file, without its context.

    Raises:
        PatchError: A hunk is shorter than its header says.

    >>> text = "diff --git a/x b/x\n@@ -3,3 +3,3 @@\n same\n-old\n+new\n same\n"
    >>> list(changed_runs(FileChange("x", "x", text)))
    [(4, ['old'], ['new'])]
    """
    for start, _, body in change.hunks():
        # A hunk that removes nothing names the line before it.
        line = start if any(text[0] in " -" for text in body) else start + 1
        old: list[str] = []
        new: list[str] = []
        for text in [*body, " "]:
            if text[0] == "-":
                old.append(text[1:])
            elif text[0] == "+":
                new.append(text[1:])
            elif text[0] == " ":
                if old or new:
                    yield line, old, new
                line += len(old) + 1
                old, new = [], []


@dataclass(slots=True)
class FileEdit:
    """The tokens by which a file differs from the base.

    Attributes:
        removed: How often a token is removed, by its line in the base and itself.
        added: How often a token is added, by the one before it in the new text and itself.
        added_by_line: Lines of the base where something changes, each with the tokens added there.
    """

    removed: Counter[tuple[int, str]] = field(default_factory=Counter)
    added: Counter[tuple[str, str]] = field(default_factory=Counter)
    added_by_line: dict[int, Counter[tuple[str, str]]] = field(default_factory=dict)

    @property
    def size(self) -> int:
        """Number of tokens that are removed or added."""
        return self.removed.total() + self.added.total()


def edits(patch: Patch) -> dict[str, FileEdit]:
    r"""Returns the tokens that a patch changes, by the path of the file.

    The two sides of each run of changed lines are compared token by token (words, and all other
    characters that are not white space), so that a token kept in a changed line is no change, and
    white space is none. In Python and YAML the depth of a line counts as a token.

    Raises:
        PatchError: The patch cannot be read.

    >>> patch = "diff --git a/x.c b/x.c\n--- a/x.c\n+++ b/x.c\n@@ -1 +1 @@\n-a + b\n+a  * b \n"
    >>> edit = edits(Patch(patch))["x.c"]
    >>> dict(edit.removed), dict(edit.added)
    ({(1, '+'): 1}, {('a', '*'): 1})
    """
    budget = WorkBudget(_MAX_COMPARISONS)
    found: dict[str, FileEdit] = {}
    for change in patch.files:
        edit = found.setdefault(change.path, FileEdit())
        for run in changed_runs(change):
            _add(edit, run, budget, keeps_depth=change.path.endswith(_INDENTED))
    return found


def _add(edit: FileEdit, run: Run, budget: WorkBudget, *, keeps_depth: bool) -> None:
    """Adds one run of changed lines to the edit of a file."""
    line, old, new = run
    before = [(line + n, t) for n, text in enumerate(old) for t in _tokens(text, keeps_depth)]
    after = [token for text in new for token in _tokens(text, keeps_depth)]
    same = matching_blocks([token for _, token in before], after, budget, autojunk=False) or []
    partner = {j + n: i + n for i, j, size in same for n in range(size)}
    kept = set(partner.values())
    for j, token in enumerate(after):
        if j in partner:
            line = before[partner[j]][0]
            continue
        pair = (after[j - 1] if j else "", token)
        edit.added[pair] += 1
        edit.added_by_line.setdefault(line, Counter())[pair] += 1
    for i, (line, token) in enumerate(before):
        if i not in kept:
            edit.removed[line, token] += 1
            edit.added_by_line.setdefault(line, Counter())


def _tokens(line: str, keeps_depth: bool) -> list[str]:
    tokens = _TOKEN.findall(line)
    if keeps_depth and tokens:
        expanded = line.expandtabs()
        tokens.insert(0, " " * (len(expanded) - len(expanded.lstrip())))
    return tokens


def calibrated_similarity(gold: str, patch: str) -> float:
    r"""Returns how much of the gold's change a patch makes, from 0 to 1.

    Both patches are taken as the tokens that they remove and add (`edits`): a removed token is the
    same in both if it stands in the same line of the base, an added one if the token before it is
    the same too and it comes within 10 lines of a change of the gold. With R for the share of the
    gold's tokens that the patch has, and P for the share of the patch's that the gold has, the
    score is F2 = 5 P R / (4 P + R). So headers and context earn nothing, nor do tokens kept in a
    changed line; no change and white space score 0, a stray file costs little, and only the gold's
    own change scores 1.

    A gold patch that changes no token (white space, a rename) is matched by an equal one only. A
    patch that cannot be read, or is larger than `MAX_EDIT_CHARS`, scores 0.

    Source: this project; F-measure: van Rijsbergen, Information Retrieval (1979), chapter 7.

    Raises:
        PatchError: The gold patch cannot be read.

    >>> gold = "diff --git a/x.py b/x.py\n--- a/x.py\n+++ b/x.py\n@@ -1 +1 @@\n-a + b\n+a * b\n"
    >>> calibrated_similarity(gold, gold)
    1.0
    >>> calibrated_similarity(gold, gold.replace("a * b", "a  +  b "))
    0.0
    >>> calibrated_similarity(gold, gold.replace("*", "-"))
    0.5
    >>> stray = gold.replace("x.py", "z.py")
    >>> round(calibrated_similarity(gold, gold + stray), 3)
    0.833
    """
    if not patch.strip() or not gold.strip():
        return 0.0
    if patch.strip() == gold.strip():
        return 1.0
    if max(len(gold), len(patch)) > MAX_EDIT_CHARS:
        return 0.0
    wanted, found = edits(Patch(gold)), edits(_if_readable(patch))
    num_wanted, num_found = (sum(e.size for e in each.values()) for each in (wanted, found))
    if not num_wanted or not num_found:
        return 0.0
    shared = sum(_shared(wanted[path], found[path]) for path in wanted.keys() & found.keys())
    recall, precision = shared / num_wanted, shared / num_found
    weighted = _RECALL_WEIGHT * precision + recall
    return (1 + _RECALL_WEIGHT) * precision * recall / weighted if shared else 0.0


def _shared(gold: FileEdit, found: FileEdit) -> int:
    """Number of tokens that both edits of a file remove or add."""
    near: Counter[tuple[str, str]] = Counter()
    lines = {line + n for line in gold.added_by_line for n in range(-_NEAR_LINES, _NEAR_LINES + 1)}
    for line, added in found.added_by_line.items():
        if line in lines:
            near.update(added)
    return (gold.removed & found.removed).total() + (gold.added & near).total()


def exact_match(gold: str, patch: str) -> float:
    r"""Returns 1 where a patch changes the same lines into the same lines as the gold, else 0.

    The lines must be the same lines of the base; the text that git writes around them (index lines,
    section names, context) does not count.

    Source: the exact match of CodeRepairRL, there of the whole text.

    Raises:
        PatchError: The gold patch cannot be read.

    >>> gold = "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-1\n+2\n"
    >>> exact_match(gold, gold.replace("--- a", "index 1..2 100644\n--- a")), exact_match(gold, "")
    (1.0, 0.0)
    """
    wanted = _changes(Patch(gold))
    return float(bool(wanted) and _changes(_if_readable(patch)) == wanted)


def diff_size(gold: str, patch: str) -> float:
    r"""Returns the penalty for a patch that is larger than the gold, from -1 to 0.

    With G changed lines (removed or added) of the gold and N of the patch it is ``G / N - 1``
    where N is more than G, else 0. Changes without lines (binary files, renames) count those of
    their text.

    Source: this project.

    Raises:
        PatchError: The gold patch cannot be read.

    >>> gold = "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-1\n+2\n"
    >>> diff_size(gold, gold), diff_size(gold, gold + gold.replace("x", "y")), diff_size(gold, "")
    (0.0, -0.5, 0.0)
    """
    most, size = _num_lines(Patch(gold)), _num_lines(_if_readable(patch))
    return most / size - 1.0 if size > most else 0.0


def line_similarity(gold: str, patch: str) -> float:
    r"""Returns the share of changed lines that two patches have in common, from 0 to 1.

    It is 2 M / T: T is the number of lines that the two patches remove and add, M the number of
    those that match, in their order (``difflib.SequenceMatcher.ratio`` over lines). A removed line
    matches if it is the same line of the base, an added one if its text is the same; lines that are
    added without removing any count one more, for their place, which matches together with one of
    them only. Context and headers do not count: two patches without a changed line in common score
    0, and only the same changes score 1. Files whose comparison takes too much work count as files
    without a common line, and a patch larger than `MAX_EDIT_CHARS` scores 0.

    Source: the reward of CodeRepairRL's thesis, equation 3.1: 1 for an identical patch, line-level
    similarity for one that is right in part, else 0. How lines are matched is this project's.

    Raises:
        PatchError: The gold patch cannot be read.

    >>> gold = "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n-1\n-2\n+3\n+4\n"
    >>> line_similarity(gold, gold), line_similarity(gold, gold.replace("+4", "+5"))
    (1.0, 0.75)
    >>> line_similarity(gold, gold.replace("/x", "/y")), line_similarity(gold, "")
    (0.0, 0.0)
    """
    wanted = _line_changes(Patch(gold))
    if len(patch) > MAX_EDIT_CHARS:
        return 0.0
    found = _line_changes(_if_readable(patch))
    if wanted == found:
        return float(bool(wanted))
    total = sum(len(lines) for each in (wanted, found) for lines in each.values())
    budget = WorkBudget(_MAX_COMPARISONS)
    num_common = sum(
        _num_common(lines, matching_blocks(lines, found[path], budget, autojunk=False))
        for path, lines in wanted.items()
        if path in found
    )
    return 2.0 * num_common / total if total else 0.0


def _num_common(lines: list[str], blocks: list[Match] | None) -> int:
    """Number of matched lines; a place counts where an added line behind it matches too."""
    matched = {block.a + n for block in blocks or () for n in range(block.size)}
    num_common, is_added_matched = 0, False
    for n in reversed(range(len(lines))):
        kind = lines[n][:1]
        num_common += n in matched and (kind != "@" or is_added_matched)
        is_added_matched = kind == "+" and (is_added_matched or n in matched)
    return num_common


def _line_changes(patch: Patch) -> dict[str, list[str]]:
    """The changed lines of each file: removed ones by their number, added ones by their text."""
    found: dict[str, list[str]] = {}
    for path, runs in _changes(patch).items():
        if isinstance(runs, str):  # a binary file, a rename
            found[path] = runs.splitlines()
            continue
        lines = found[path] = []
        for start, old, new in runs:
            lines += [f"-{start + n}" for n in range(len(old))] or [f"@{start}"]
            lines += [f"+{text}" for text in new]
    return found


def function_match(gold: str, patch: str, base_files: Mapping[str, str] | None = None) -> float:
    r"""Returns how far a patch changes the gold's functions and no others, from 0 to 1.

    It is the number of functions that both patches change, over the number of functions of
    whichever changes more; a change outside of any function counts as one of the file's own.

    - *Python*, where the file's text at base is known: a function is the innermost ``def`` around a
      changed line, by its dotted name with those of its classes. Removed lines are looked up in the
      base's syntax tree, added ones in that of the patched text.
    - *Other languages*, and files of unknown text: a function is the text that git writes behind
      the numbers of a hunk's header, which names the last function that begins before the hunk's
      first line. Where the gold or the patch has a hunk without such text, or git found none, the
      file counts as a whole.

    Source: this project; CodeRepairRL's thesis names partial credit by function as future work.

    Args:
        gold: The reference patch.
        patch: The patch to score.
        base_files: Texts of the base by path, for files that the gold patch changes.

    Raises:
        PatchError: The gold patch cannot be read.

    >>> base = {"x.py": "def f():\n    return 1\n\n\ndef g():\n    return 2\n"}
    >>> f = Patch.between(base, {"x.py": base["x.py"].replace("1", "3")}).text
    >>> g = Patch.between(base, {"x.py": base["x.py"].replace("2", "4")}).text
    >>> function_match(f, f.replace("3", "5"), base), function_match(f, g, base)
    (1.0, 0.0)
    >>> function_match(f, g)
    1.0
    """
    if len(patch) > MAX_EDIT_CHARS:
        return 0.0
    base = base_files or {}
    wanted_files = {change.path: change for change in Patch(gold).files}
    try:
        found_files = {change.path: change for change in Patch(patch).files}
        wanted: set[tuple[str, str]] = set()
        found: set[tuple[str, str]] = set()
        for path in wanted_files.keys() | found_files.keys():
            changes = wanted_files.get(path), found_files.get(path)
            for into, names in zip((wanted, found), _functions(changes, base), strict=True):
                into |= {(path, name) for name in names}
    except PatchError:
        for change in wanted_files.values():  # the gold's own fault is an error
            list(changed_runs(change))
        return 0.0
    most = max(len(wanted), len(found))
    return len(wanted & found) / most if most else 0.0


_Changes = tuple[FileChange | None, FileChange | None]


def _functions(changes: _Changes, base: Mapping[str, str]) -> list[set[str]]:
    """The names of the functions that either of two changes of one file touches."""
    if all(c is None or (c.old_path in base and c.path.endswith(_PYTHON)) for c in changes):
        by_name = [_python_functions(c, base) if c else set() for c in changes]
        if None not in by_name:
            return [names or set() for names in by_name]
    contexts = [set(_HUNK.findall(c.text)) if c else set() for c in changes]
    pairs = zip(contexts, changes, strict=True)
    if all("" not in names and bool(names) == (change is not None) for names, change in pairs):
        return contexts
    return [{""} if change else set() for change in changes]


def _python_functions(change: FileChange, base: Mapping[str, str]) -> set[str] | None:
    """The functions that hold a change's lines; None where either text is not Python."""
    before = base[change.old_path or ""]
    files = Patch(change.text).apply({change.old_path or "": before})
    names: set[str] = set()
    shift = 0
    numbers: tuple[list[int], list[int]] = ([], [])
    for start, old, new in changed_runs(change):
        numbers[0].extend(range(start, start + len(old)))
        numbers[1].extend(range(start + shift, start + shift + len(new)))
        shift += len(new) - len(old)
    for text, lines in zip((before, files.get(change.path, "")), numbers, strict=True):
        try:
            holders = _functions_by_line(text)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return None
        names |= {holders[line] if line < len(holders) else "" for line in lines}
    return names


def _functions_by_line(text: str) -> list[str]:
    """The dotted name of the innermost function around each line, from 1 on; "" for none."""
    found = [""] * (text.count("\n") + 2)

    def mark(node: ast.AST, prefix: str) -> None:
        for child in ast.iter_child_nodes(node):
            if not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                mark(child, prefix)
                continue
            name = f"{prefix}{child.name}"
            if not isinstance(child, ast.ClassDef):
                first = min([child.lineno, *(d.lineno for d in child.decorator_list)])
                last = child.end_lineno or child.lineno
                found[first : last + 1] = [name] * (last + 1 - first)
            mark(child, f"{name}.")

    mark(syntax.parse(text), "")
    return found


def _if_readable(text: str) -> Patch:
    """Returns a policy's patch; an empty one where a header or a hunk cannot be read."""
    patch = Patch(text)
    try:
        for change in patch.files:
            list(change.hunks())
    except PatchError:
        return Patch()
    return patch


def _changes(patch: Patch) -> dict[str, list[Run] | str]:
    """Returns the changes of each file: runs of lines, or the whole text where it has none."""
    return {
        change.path: list(changed_runs(change)) or change.text.strip() for change in patch.files
    }


def _num_lines(patch: Patch) -> int:
    return sum(
        len(change.splitlines())
        if isinstance(change, str)
        else sum(len(old) + len(new) for _, old, new in change)
        for change in _changes(patch).values()
    )
