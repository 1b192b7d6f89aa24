"""Steps that can be undone and redone."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from quill.edits import Edit
from quill.marks import Mark


@dataclass(frozen=True, slots=True)
class Change:
    """An edit that has been made, and where the marks had been that it touched."""

    edit: Edit
    places: Mapping[Mark, int]


@dataclass(slots=True, eq=False)
class Step:
    """Changes that are undone and redone together, in the order in which they were made."""

    changes: list[Change]


class History:
    """The steps of a document.

    Args:
        limit: how many can be undone.
    """

    def __init__(self, limit: int) -> None:
        if limit < 1:
            raise ValueError(f"limit must be at least 1, got {limit}")
        self._limit = limit
        self._first: object = None
        self._past: list[Step] = []
        self._future: list[Step] = []
        self._run: Step | None = None

    @property
    def can_undo(self) -> bool:
        """Whether there is a step to undo."""
        return bool(self._past)

    @property
    def can_redo(self) -> bool:
        """Whether there is a step to redo."""
        return bool(self._future)

    @property
    def state(self) -> object:
        """Stands for the state that has been reached; the same one if it is reached again."""
        return self._past[-1] if self._past else self._first

    def end_run(self) -> None:
        """Lets the next character begin a step."""
        self._run = None

    def add(self, change: Change) -> None:
        """Adds a change, to the run if it goes on with that."""
        edit = change.edit
        if self._run and edit.is_typed and edit.start == self._run.changes[-1].edit.start + 1:
            self._run.changes.append(change)
            return
        self.add_step([change])
        self._run = self._past[-1] if edit.is_typed else None

    def add_step(self, changes: list[Change]) -> None:
        """Adds a step."""
        self._run = None
        self._future.clear()
        self._past.append(Step(changes))
        if len(self._past) > self._limit:
            self._first = self._past.pop(0)

    def undo(self, take_back: Callable[[Change], Change]) -> bool:
        """Undoes a step; False if there is none.

        Args:
            take_back: takes a change back, and gives the change that this makes.
        """
        return self._turn(self._past, self._future, take_back)

    def redo(self, take_back: Callable[[Change], Change]) -> bool:
        """Redoes a step; False if there is none.

        Args:
            take_back: takes a change back, and gives the change that this makes.
        """
        return self._turn(self._future, self._past, take_back)

    def _turn(
        self, source: list[Step], target: list[Step], take_back: Callable[[Change], Change]
    ) -> bool:
        self._run = None
        if not source:
            return False
        step = source.pop()
        step.changes = [take_back(change) for change in reversed(step.changes)]
        target.append(step)
        return True
