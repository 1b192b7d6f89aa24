"""Changes to several files, worked out first and then made: all of them, or none."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from coding_gym.tools import editing
from coding_gym.tools.answers import Refusal, name_of
from coding_gym.tools.effort import Effort
from coding_gym.tools.file_patch import FilePatch
from coding_gym.tools.files import TextFile
from coding_gym.tools.hunks import LOOSE, MAX_WORK, STRICT, apply_hunks
from coding_gym.tools.own_commands import run_own
from coding_gym.tools.protocol import ToolContext

MAX_BYTES = 32 << 20  # of all files that a patch touches
# What is at $PLACE: its mode, and the first folder above it that is missing.
_SURVEY = """\
stat -L -c %a -- "$PLACE" 2>/dev/null || echo
folder=${PLACE%/*} missing=
while [ "$folder" ] && [ ! -e "$folder" ]; do missing=$folder folder=${folder%/*}; done
printf '%s' "$missing\""""


@dataclass(slots=True)
class _Entry:
    """A place that the patch touches: what is there, and what shall be.

    Attributes:
        path: As the patch has it.
        place: Where it is, links resolved.
        before: Its bytes, or None where nothing is.
        mode: Its mode, or "".
        missing: The topmost folder that has to be made for it, or "".
        after: Its bytes after the patch, or None where nothing shall be.
        new_mode: The mode that it is given, or "" to leave it.
    """

    path: str
    place: str
    before: bytes | None
    mode: str
    missing: str
    after: bytes | None = None
    new_mode: str = ""


@dataclass(slots=True)
class PlannedPatch:
    """What a patch comes to in a workspace; nothing is written yet.

    Attributes:
        files: One mapping per file of the patch: ``path``, ``action``, ``hunks`` (the lines at
            which they went in).
    """

    context: ToolContext
    files: list[dict[str, Any]] = field(default_factory=list)
    _entries: dict[str, _Entry] = field(default_factory=dict)
    _effort: Effort = field(default_factory=lambda: Effort(MAX_WORK))

    def add(self, patch: FilePatch) -> None:
        """Works out one file's part, on top of those before it.

        Raises:
            Refusal: It does not apply, and why.
            SandboxError: The sandbox is closed or died.
        """
        named = name_of(patch.new_path or patch.old_path or "")
        try:
            self._add(patch, named)
        except Refusal as why:
            said = str(why)
            raise Refusal(said if said.startswith(named) else f"{named}: {said}") from why

    def _add(self, patch: FilePatch, named: str) -> None:
        old = None if patch.old_path is None else self._entry(patch.old_path)
        new = None if patch.new_path is None else self._entry(patch.new_path)
        if old is not None and old.after is None:
            raise Refusal(f"{name_of(old.path)} does not exist")
        if new is not None and new is not old and new.after is not None:
            raise Refusal(f"{name_of(new.path)} is there already")
        leaves = old is not None and new is not old and not patch.is_copy
        if old is not None and leaves and self._is_link(old.path):
            raise Refusal(f"{name_of(old.path)} is a symbolic link; use a command instead")
        text, numbers = self._changed(old, patch)
        if new is not None:
            new.after = text
            new.new_mode = patch.mode or (new.new_mode if old is new else _mode_of(old))
        if old is not None and leaves:
            old.after = None
        did = {"action": _action(patch, old is new), "path": named}
        self.files.append({**did, **({"hunks": numbers} if patch.hunks else {})})

    def _changed(self, old: _Entry | None, patch: FilePatch) -> tuple[bytes, list[int]]:
        data = b"" if old is None or old.after is None else old.after
        if not patch.hunks:
            return data, []
        content = TextFile.decode(data)
        if content.is_binary:
            raise Refusal("it is a binary file; use a command instead")
        ways = LOOSE if patch.is_loose else STRICT
        text, numbers = apply_hunks(content.text, patch.hunks, ways, self._effort)
        if patch.new_path is None and text:
            raise Refusal("the patch deletes this file, but not all of its lines")
        try:
            return content.encode(text), numbers
        except UnicodeEncodeError as error:
            raise Refusal("the new text does not fit the file's encoding") from error

    def _entry(self, path: str) -> _Entry:
        place = editing.find_place(self.context, path, may_be_new=True)
        if place not in self._entries:
            before = editing.read_if_there(self.context.sandbox, path, place)
            survey = run_own(self.context, _SURVEY, env={"PLACE": place}).output
            mode, _, missing = survey.partition("\n")
            self._entries[place] = _Entry(path, place, before, mode, missing, after=before)
            if sum(len(entry.before or b"") for entry in self._entries.values()) > MAX_BYTES:
                raise Refusal(f"files of more than {MAX_BYTES >> 20} MiB in one patch; split it")
        return self._entries[place]

    def _is_link(self, path: str) -> bool:
        return run_own(self.context, 'test -L "$FILE"', env={"FILE": path}).ok

    def write(self) -> None:
        """Makes all changes; where one cannot be made, those before it are taken back.

        Raises:
            Refusal: One cannot be made, and whether all is as it was.
            SandboxError: The sandbox is closed or died.
        """
        changed = [e for e in self._entries.values() if e.after != e.before or _sets_mode(e)]
        # What takes space away comes last, so that a full disk is found before anything is lost.
        changed.sort(key=lambda entry: entry.after is None)
        for number, entry in enumerate(changed):
            try:
                _put(self.context, entry, entry.after, entry.new_mode if _sets_mode(entry) else "")
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
                now = editing.read_if_there(self.context.sandbox, entry.path, entry.place)
                if now != entry.before or _sets_mode(entry):
                    _put(self.context, entry, entry.before, entry.mode)
                if entry.missing:
                    run_own(
                        self.context,
                        'find "$TOP" -depth -type d -empty -delete',
                        env={"TOP": entry.missing},
                    )
            except Refusal:
                lost.append(name_of(entry.path))
        return lost


def apply_all(context: ToolContext, files: Sequence[FilePatch]) -> list[dict[str, Any]]:
    """Applies a patch, all of it or nothing, and returns what it did to each file.

    Raises:
        Refusal: It does not apply, and why.
        SandboxError: The sandbox is closed or died.
    """
    planned = PlannedPatch(context)
    for file in files:
        planned.add(file)
    planned.write()
    return planned.files


def _put(context: ToolContext, entry: _Entry, data: bytes | None, mode: str) -> None:
    """Makes a place hold some bytes, with a mode unless it is "", or nothing."""
    if data is None:
        if not run_own(context, 'rm -f -- "$PLACE"', env={"PLACE": entry.place}).ok:
            raise Refusal(f"{name_of(entry.path)} cannot be removed")
        return
    editing.write_bytes(context.sandbox, entry.path, entry.place, data)
    if mode:
        done = run_own(
            context, 'chmod -- "$MODE" "$PLACE"', env={"MODE": mode, "PLACE": entry.place}
        )
        if not done.ok:
            raise Refusal(f"the mode of {name_of(entry.path)} cannot be set")


def _sets_mode(entry: _Entry) -> bool:
    return entry.after is not None and bool(entry.new_mode) and entry.new_mode != entry.mode


def _mode_of(old: _Entry | None) -> str:
    return "" if old is None else old.new_mode or old.mode


def _action(patch: FilePatch, is_same: bool) -> str:
    if patch.old_path is None:
        return "added"
    if patch.new_path is None:
        return "deleted"
    if is_same:
        return "updated"
    return "copied" if patch.is_copy else "renamed"
