"""Patches applied to the workspace: all changes are worked out first, then made; all or none.

A hunk goes where the patch says if the text there fits. Otherwise it goes where it fits, if that is
one place only; a hunk of a Codex envelope, which has no line numbers, goes to the first such place
behind the hunk before it, as Codex does.
"""

import bisect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import accumulate
from typing import Any

from coding_gym.tools.files import TextFile, find_place, is_a, put, read_if_there, run_own
from coding_gym.tools.patches import FilePatch, Hunk
from coding_gym.tools.toolset import Refusal, ToolContext, name_of

MAX_BYTES = 32 << 20  # of all files that a patch touches
# How lines are compared, in this order; the first way that finds a place wins.
_STRICT: tuple[Callable[[str], str], ...] = (str, str.rstrip)
_LOOSE: tuple[Callable[[str], str], ...] = (*_STRICT, str.strip)
_MAX_NAMED = 5

MAX_WORK = 1 << 27
"""Characters that may be looked at to find the positions of one patch, a second of work at most."""

_LINE_COST = 16  # what a line costs when a text is taken apart, in characters


@dataclass(slots=True)
class Effort:
    """The work that may still be spent on the positions of a patch, in characters."""

    left: int = MAX_WORK

    def spend(self, work: int) -> None:
        """Takes work from the budget.

        Raises:
            Refusal: It is more than is left.
        """
        if work > self.left:
            raise Refusal(
                "finding the places of this patch takes too much work; split it, leave out lines "
                "behind @@, or write the lines exactly as they are in the file"
            )
        self.left -= work


class _Lines:
    """A text's lines, searchable for runs of lines in time linear in the text.

    Raises:
        Refusal: From any method: the searches came to more than the effort allows.
    """

    def __init__(self, text: str, effort: Effort) -> None:
        self._effort = effort
        self._cost = len(text) + _LINE_COST * (text.count("\n") + 1)
        self._effort.spend(self._cost)
        self.lines = text.removesuffix("\n").split("\n") if text else []
        self._folded = cache(self._fold)

    def _fold(self, way: Callable[[str], str]) -> tuple[str, list[int]]:
        self._effort.spend(self._cost)
        folded = [way(line) for line in self.lines]
        starts = list(accumulate((len(line) + 1 for line in folded), initial=0))
        return "\n" + "\n".join(folded) + "\n", starts

    def fits(self, wanted: Sequence[str], at: int, way: Callable[[str], str]) -> bool:
        found = self.lines[at : at + len(wanted)]
        return [way(line) for line in found] == [way(line) for line in wanted]

    def positions(
        self, wanted: Sequence[str], begin: int, way: Callable[[str], str], most: int
    ) -> list[int]:
        """Returns where a run of lines begins, from a line on, at most so many positions."""
        if not self.lines:
            return []
        text, starts = self._folded(way)
        needle = "\n" + "\n".join(way(line) for line in wanted) + "\n"
        found: list[int] = []
        position = starts[min(begin, len(starts) - 1)]
        while len(found) < most:
            at = text.find(needle, position)
            self._effort.spend((at if at >= 0 else len(text)) - position + len(needle))
            if at < 0:
                break
            found.append(bisect.bisect_left(starts, at))
            position = at + 1
        return found


def apply_hunks(
    text: str,
    hunks: Sequence[Hunk],
    effort: Effort | None = None,
    *,
    is_loose: bool = False,
) -> tuple[str, list[int]]:
    """Puts hunks into a text, in their order.

    Args:
        text: With line feeds for line ends.
        hunks: From the top of the text to its end.
        effort: What the search may take; `MAX_WORK` by default.
        is_loose: See `FilePatch`.

    Returns:
        The new text, and the line of the old one, from 1, at which each hunk went in.

    Raises:
        Refusal: One of them fits nowhere, or at several positions, or that takes too much work.
    """
    source = _Lines(text, effort or Effort())
    ends_bare = bool(text) and not text.endswith("\n")
    result: list[str] = []
    taken, drift, numbers = 0, 0, []
    for number, hunk in enumerate(hunks, 1):
        try:
            at = _locate(source, hunk, taken, drift, is_loose=is_loose)
        except Refusal as why:
            raise Refusal(f"hunk {number}: {why}") from why
        if hunk.start is not None:
            drift = at - _stated(hunk)
        result += source.lines[taken:at]
        taken = at + len(hunk.before)
        result += _merged(hunk, source.lines[at:taken])
        numbers.append(at + 1)
        if taken == len(source.lines) and hunk.lines:
            ends_bare = _ends_bare(hunk, ends_bare)
    result += source.lines[taken:]
    if not result:
        return "", numbers
    return "\n".join(result) + ("" if ends_bare else "\n"), numbers


def _ends_bare(hunk: Hunk, was_bare: bool) -> bool:
    """Returns whether the text ends without a line end, after a hunk at its end."""
    if hunk.is_bare_after:
        return True
    return was_bare and not hunk.is_bare_before and hunk.lines[-1][0] == " "


def _merged(hunk: Hunk, source: Sequence[str]) -> list[str]:
    """Returns the lines that a hunk leaves; those that stay are the text's own."""
    there = iter(source)
    result = []
    for line in hunk.lines:
        stands = line[1:] if line[0] == "+" else next(there)
        if line[0] != "-":
            result.append(stands)
    return result


def _stated(hunk: Hunk) -> int:
    """Returns the index of the line where the patch says that a hunk goes in."""
    start = hunk.start or 0
    return start - 1 if hunk.before else start  # one that takes nothing names the line above it


def _locate(source: _Lines, hunk: Hunk, begin: int, drift: int, *, is_loose: bool) -> int:
    ways = _LOOSE if is_loose else _STRICT
    for anchor in hunk.anchors:
        begin = _anchored(source, anchor, begin, ways)
    wanted = hunk.before
    if not wanted:
        return _place_of_addition(source, hunk, begin, drift)
    if hunk.at_end:
        at = len(source.lines) - len(wanted)
        if at >= begin and any(source.fits(wanted, at, way) for way in ways):
            return at
        raise Refusal(f"the file does not end with its lines, which begin with {wanted[0]!r:.80}")
    stated = None if hunk.start is None else _stated(hunk) + drift
    for way in ways:
        if stated is not None and stated >= begin and source.fits(wanted, stated, way):
            return stated
    for way in ways:
        found = source.positions(wanted, begin, way, 1 if is_loose else _MAX_NAMED + 1)
        if len(found) == 1:
            return found[0]
        if found:
            lines = ", ".join(str(at + 1) for at in found[:_MAX_NAMED])
            more = " and more" if len(found) > _MAX_NAMED else ""
            raise Refusal(
                f"it fits at lines {lines}{more}, and the line that it says is none of them; "
                "correct the line or add more context"
            )
    raise Refusal(_mismatch(source, wanted, stated, begin))


def _mismatch(source: _Lines, wanted: Sequence[str], stated: int | None, begin: int) -> str:
    """Says which line of a hunk is the first that is not in the text."""
    if stated is not None and begin <= stated < len(source.lines):
        for i, line in enumerate(wanted):
            there = source.lines[stated + i] if stated + i < len(source.lines) else None
            if there is None or there.rstrip() != line.rstrip():
                got = "the end of the file" if there is None else f"{there!r:.80}"
                return f"at line {stated + i + 1} it wants {line!r:.80}, but there is {got}"
    return f"its lines, which begin with {wanted[0]!r:.80}, are not in the file in this order"


def _anchored(source: _Lines, anchor: str, begin: int, ways: Sequence[Callable[[str], str]]) -> int:
    found = next((at for way in ways for at in source.positions([anchor], begin, way, 1)), None)
    if found is None:
        raise Refusal(f"there is no line {anchor!r:.80} behind the hunk before")
    return found + 1


def _place_of_addition(source: _Lines, hunk: Hunk, begin: int, drift: int) -> int:
    if not source.lines:
        return 0
    if hunk.start is not None:
        at = _stated(hunk) + drift
        if not begin <= at <= len(source.lines):
            raise Refusal(f"it adds behind line {hunk.start}, and the file has {len(source.lines)}")
        return at
    return begin if hunk.anchors else len(source.lines)


# What is at $PLACE: its mode, and the first folder above it that is missing.
_INSPECT_PATH = """\
stat -L -c %a -- "$PLACE" 2>/dev/null || echo
folder=${PLACE%/*} missing=
while [ "$folder" ] && [ ! -e "$folder" ]; do missing=$folder folder=${folder%/*}; done
printf '%s' "$missing\""""


@dataclass(slots=True)
class _Entry:
    """A place that the patch touches.

    Attributes:
        path: The path in the patch.
        place: Its real place, links resolved.
        before: Its bytes, or None where nothing is.
        mode: Its mode, or "".
        missing: The topmost folder that has to be made for it, or "".
        after: Its bytes after the patch, or None where nothing shall be.
        new_mode: The mode after the patch, or "" to leave it.
    """

    path: str
    place: str
    before: bytes | None
    mode: str
    missing: str
    after: bytes | None = None
    new_mode: str = ""

    @property
    def sets_mode(self) -> bool:
        return self.after is not None and self.new_mode not in ("", self.mode)


def apply_patch(context: ToolContext, files: Sequence[FilePatch]) -> list[dict[str, Any]]:
    """Applies a patch, all of it or nothing, and returns its effect on each file.

    Returns:
        One mapping per file: ``path``, ``action``, ``hunks`` (the lines at which they went in).

    Raises:
        Refusal: It does not apply, and why.
        SandboxError: The sandbox is closed or died.
    """
    plan = _Plan(context)
    done = [plan.add(file) for file in files]
    plan.write()
    return done


@dataclass(slots=True)
class _Plan:
    """The changes that a patch comes to in a workspace; nothing is written before `write`."""

    context: ToolContext
    entries: dict[str, _Entry] = field(default_factory=dict)
    effort: Effort = field(default_factory=Effort)

    def add(self, patch: FilePatch) -> dict[str, Any]:
        """Works out one file's part, on top of those before it."""
        name = name_of(patch.new_path or patch.old_path or "")
        try:
            action, numbers = self._change(patch)
        except Refusal as why:
            said = str(why)
            raise Refusal(said if said.startswith(name) else f"{name}: {said}") from why
        return {"action": action, "path": name} | ({"hunks": numbers} if patch.hunks else {})

    def _change(self, patch: FilePatch) -> tuple[str, list[int]]:
        old = None if patch.old_path is None else self._entry(patch.old_path)
        new = None if patch.new_path is None else self._entry(patch.new_path)
        if old is not None and old.after is None:
            raise Refusal(f"{name_of(old.path)} does not exist")
        if new is not None and new is not old and new.after is not None:
            raise Refusal(f"{name_of(new.path)} is there already")
        leaves = old is not None and new is not old and not patch.is_copy
        if old is not None and leaves and is_a(self.context, "-L", old.path):
            raise Refusal(f"{name_of(old.path)} is a symbolic link; use a command instead")
        data, numbers = self._edited(old, patch)
        if new is not None:
            new.after = data
            kept = "" if old is None else old.new_mode or ("" if old is new else old.mode)
            new.new_mode = patch.mode or kept
        if old is not None and leaves:
            old.after = None
        if old is None or new is None:
            return ("added" if old is None else "deleted"), numbers
        renamed = "copied" if patch.is_copy else "renamed"
        return ("updated" if old is new else renamed), numbers

    def _edited(self, old: _Entry | None, patch: FilePatch) -> tuple[bytes, list[int]]:
        data = b"" if old is None or old.after is None else old.after
        if not patch.hunks:
            return data, []
        content = TextFile.decode(data)
        if content.is_binary:
            raise Refusal("it is a binary file; use a command instead")
        text, numbers = apply_hunks(content.text, patch.hunks, self.effort, is_loose=patch.is_loose)
        if patch.new_path is None and text:
            raise Refusal("the patch deletes this file, but not all of its lines")
        try:
            return content.encode(text), numbers
        except UnicodeEncodeError as error:
            raise Refusal("the new text does not fit the file's encoding") from error

    def _entry(self, path: str) -> _Entry:
        place = find_place(self.context, path, may_be_new=True)
        if place not in self.entries:
            before = read_if_there(self.context, path, place)
            output = run_own(self.context, _INSPECT_PATH, env={"PLACE": place}).output
            mode, _, missing = output.partition("\n")
            self.entries[place] = _Entry(path, place, before, mode, missing, after=before)
            if sum(len(entry.before or b"") for entry in self.entries.values()) > MAX_BYTES:
                raise Refusal(f"files of more than {MAX_BYTES >> 20} MiB in one patch; split it")
        return self.entries[place]

    def write(self) -> None:
        """Makes all changes; where one cannot be made, those before it are taken back."""
        changed = [e for e in self.entries.values() if e.after != e.before or e.sets_mode]
        # Deletions come last, so that a full disk is found before anything is lost.
        changed.sort(key=lambda entry: entry.after is None)
        for number, entry in enumerate(changed):
            mode = entry.new_mode if entry.sets_mode else ""
            try:
                put(self.context, entry.path, entry.place, entry.after, mode)
            except Refusal as why:
                lost = self._take_back(changed[: number + 1])
                kept = f"not restored: {', '.join(lost)}" if lost else "nothing was changed"
                raise Refusal(f"{why}; {kept}") from why

    def _take_back(self, done: Sequence[_Entry]) -> list[str]:
        """Brings places back to what they were; returns the paths of those that resist."""
        lost = []
        # New files go first: they hold the space that old content may need.
        for entry in sorted(done, key=lambda entry: entry.before is not None):
            try:
                now = read_if_there(self.context, entry.path, entry.place)
                if now != entry.before or entry.sets_mode:
                    put(self.context, entry.path, entry.place, entry.before, entry.mode)
                if entry.missing:
                    command = 'find "$TOP" -depth -type d -empty -delete'
                    run_own(self.context, command, env={"TOP": entry.missing})
            except Refusal:
                lost.append(name_of(entry.path))
        return lost
