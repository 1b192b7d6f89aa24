"""Edits: what is done to a text."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Edit:
    """At a position a text is taken out, and another one is put there.

    Attributes:
        start: the position.
        removed: what is taken out; may be empty.
        added: what is put there; may be empty.
    """

    start: int
    removed: str
    added: str

    @property
    def end(self) -> int:
        """Where the text ends that is taken out."""
        return self.start + len(self.removed)

    @property
    def is_typed(self) -> bool:
        """Whether a single character is inserted."""
        return not self.removed and len(self.added) == 1

    def inverse(self) -> Edit:
        """The edit that takes this one back."""
        return Edit(self.start, self.added, self.removed)

    def applied(self, text: str) -> str:
        """A text after this edit."""
        return text[: self.start] + self.added + text[self.end :]

    def moved(self, position: int, *, leans_right: bool) -> int:
        """Where a position is after this edit.

        Args:
            position: where it was.
            leans_right: whether it goes behind what is inserted there.
        """
        if position < self.start:
            return position
        if position > self.end:
            return position + len(self.added) - len(self.removed)
        return self.start + (len(self.added) if leans_right else 0)
