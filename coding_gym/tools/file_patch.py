"""What a patch does to one file, as values."""

from dataclasses import dataclass

MAX_FILES = 100  # of one patch; reading stops behind them
MAX_HUNKS = 500


@dataclass(frozen=True, slots=True)
class Hunk:
    """One piece of a change to a text.

    Attributes:
        lines: Its lines, each behind ``" "``, ``"-"`` or ``"+"``.
        start: The line, from 1, where the patch says that it begins; None where it does not say.
        anchors: Lines that stand above it, in this order, somewhere behind the hunk before.
        takes_first: Whether the first place that fits is meant, where several do.
        at_end: Whether it must end with the text.
        is_bare_before: Whether the patch says that the text ends without a line end, before …
        is_bare_after: … and after.
    """

    lines: tuple[str, ...]
    start: int | None = None
    anchors: tuple[str, ...] = ()
    takes_first: bool = False
    at_end: bool = False
    is_bare_before: bool = False
    is_bare_after: bool = False

    @property
    def before(self) -> list[str]:
        """The lines that it expects."""
        return [line[1:] for line in self.lines if line[0] in " -"]


@dataclass(frozen=True, slots=True)
class FilePatch:
    """What a patch does to one file.

    Attributes:
        old_path: The path before, or None for a new file.
        new_path: The path after, or None for a deleted file.
        hunks: Changes to its text.
        mode: ``644`` or ``755`` where the patch sets it, else "".
        is_copy: Whether the file at the old path stays.
        is_loose: Whether white space is forgiven, as Codex does.
    """

    old_path: str | None
    new_path: str | None
    hunks: tuple[Hunk, ...] = ()
    mode: str = ""
    is_copy: bool = False
    is_loose: bool = False
