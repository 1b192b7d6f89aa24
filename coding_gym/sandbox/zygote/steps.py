"""Names for the steps of a set-up, so that a failure says which one it was."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any


class SetupError(Exception):
    """A step of a set-up failed.

    Attributes:
        step: The attempted step, such as ``"mount the overlay"``.
        errno: The system's error number, 0 where there is none.
        reason: The system's words, one line.
    """

    def __init__(self, step: str, errno: int, reason: str) -> None:
        super().__init__(f"could not {step}: {reason}")
        self.step = step
        self.errno = errno
        self.reason = reason

    def to_json(self) -> dict[str, Any]:
        """Returns the error as the header of a reply."""
        return {"error": {"step": self.step, "errno": self.errno, "reason": self.reason}}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "SetupError":
        """Returns the error that the ``error`` of such a header describes."""
        return cls(str(data.get("step")), int(data.get("errno", 0)), str(data.get("reason")))


@contextmanager
def step(name: str) -> Iterator[None]:
    """Turns an ``OSError`` of the block into a `SetupError` that names the step."""
    try:
        yield
    except OSError as error:
        raise SetupError(name, error.errno or 0, str(error)) from error
