"""Documents."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Literal

from quill.edits import Edit
from quill.errors import GroupError, PositionError
from quill.history import Change, History
from quill.lines import Lines
from quill.marks import Mark, Marks
from quill.searching import Span, find_all


class Document:
    """A text that is edited.

    Args:
        text: what it begins with.
        limit: how many steps can be undone.
    """

    def __init__(self, text: str = "", *, limit: int = 1000) -> None:
        self._text = text
        self._lines = Lines(text)
        self._marks = Marks()
        self._history = History(limit)
        self._saved = self._history.state
        self._groups: list[list[Change]] = []
        self._listeners: list[Callable[[Edit], object]] = []

    @property
    def text(self) -> str:
        """All of the text."""
        return self._text

    @property
    def lines(self) -> Lines:
        """Where its lines are."""
        return self._lines

    @property
    def marks(self) -> dict[str, int]:
        """Where its marks are, by name."""
        return self._marks.positions()

    @property
    def can_undo(self) -> bool:
        """Whether there is a step to undo."""
        return self._history.can_undo

    @property
    def can_redo(self) -> bool:
        """Whether there is a step to redo."""
        return self._history.can_redo

    @property
    def is_modified(self) -> bool:
        """Whether it is in another state than the one that was last saved."""
        return any(self._groups) or self._history.state is not self._saved

    def insert(self, position: int, text: str) -> None:
        """Puts a text at a position.

        Raises:
            PositionError: if that is not in the text.
        """
        self.replace(position, position, text)

    def delete(self, start: int, end: int) -> None:
        """Takes out what is between two positions.

        Raises:
            PositionError: if they are not in the text, or in the wrong order.
        """
        self.replace(start, end, "")

    def replace(self, start: int, end: int, text: str) -> None:
        """Puts a text in place of what is between two positions.

        Raises:
            PositionError: if they are not in the text, or in the wrong order.
        """
        if not 0 <= start <= end <= len(self._text):
            raise PositionError(f"there is nothing from {start} to {end}")
        edit = Edit(start, self._text[start:end], text)
        if edit.removed == edit.added:
            return
        change = self._perform(edit)
        if self._groups:
            self._groups[-1].append(change)
        else:
            self._history.add(change)

    def find(
        self, wanted: str, *, ignore_case: bool = False, whole_words: bool = False
    ) -> list[Span]:
        """Start and end of everything that is like a text, from front to back.

        Raises:
            ValueError: if that text is empty.
        """
        return find_all(self._text, wanted, ignore_case=ignore_case, whole_words=whole_words)

    def replace_all(
        self, wanted: str, text: str, *, ignore_case: bool = False, whole_words: bool = False
    ) -> int:
        """Replaces everything that is found; says how many that were.

        Raises:
            ValueError: if what is wanted is empty.
        """
        spans = self.find(wanted, ignore_case=ignore_case, whole_words=whole_words)
        with self.group():
            for start, end in reversed(spans):
                self.replace(start, end, text)
        return len(spans)

    def set_mark(
        self, name: str, position: int, *, leans: Literal["left", "right"] = "left"
    ) -> None:
        """Sets a mark, in place of one that has that name.

        Raises:
            PositionError: if the position is not in the text.
        """
        if not 0 <= position <= len(self._text):
            raise PositionError(f"there is no position {position}")
        self._marks.set(name, Mark(position, leans == "right"))

    def remove_mark(self, name: str) -> None:
        """Takes a mark out.

        Raises:
            KeyError: if there is none of that name.
        """
        self._marks.remove(name)

    @contextmanager
    def group(self) -> Iterator[None]:
        """Makes one step of the edits in a ``with`` block; an exception takes them back."""
        changes: list[Change] = []
        marks = self._marks.all()
        self._groups.append(changes)
        try:
            yield
        except BaseException:
            for change in reversed(changes):
                self._perform(change.edit.inverse())
            self._marks.restore(marks)
            raise
        finally:
            self._groups.pop()
        if self._groups:
            self._groups[-1].extend(changes)
        elif changes:
            self._history.add_step(changes)

    def undo(self) -> bool:
        """Undoes a step; False if there is none.

        Raises:
            GroupError: in a group.
        """
        self._refuse_in_group("undo")
        return self._history.undo(self._take_back)

    def redo(self) -> bool:
        """Redoes a step; False if there is none.

        Raises:
            GroupError: in a group.
        """
        self._refuse_in_group("redo")
        return self._history.redo(self._take_back)

    def save(self) -> str:
        """The text, which is to be written to a file; this state is then the saved one.

        Raises:
            GroupError: in a group.
        """
        self._refuse_in_group("save")
        self._history.end_run()
        self._saved = self._history.state
        return self._text

    def listen(self, listener: Callable[[Edit], object]) -> None:
        """Calls a function with each edit from now on."""
        self._listeners.append(listener)

    def _perform(self, edit: Edit) -> Change:
        self._text = edit.applied(self._text)
        self._lines.follow(edit)
        places = self._marks.follow(edit)
        for listener in self._listeners:
            listener(edit)
        return Change(edit, places)

    def _take_back(self, change: Change) -> Change:
        back = self._perform(change.edit.inverse())
        self._marks.put_back(change.places)
        return back

    def _refuse_in_group(self, what: str) -> None:
        if self._groups:
            raise GroupError(f"cannot {what} in a group")
