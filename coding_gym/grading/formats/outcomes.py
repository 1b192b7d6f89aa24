"""Statuses of tests as they are read from a text, one after the other."""

from dataclasses import dataclass, field

from coding_gym.grade import TestStatus

_MAX_MESSAGE_CHARS = 300


@dataclass(slots=True)
class Outcomes:
    """What a text says.

    Attributes:
        statuses: Status by test id; a test that was reported twice has ended in an error.
        messages: Why, by test id; one line each.
        ended: Whether the text is complete, as far as its format can tell.
    """

    statuses: dict[str, TestStatus] = field(default_factory=dict)
    messages: dict[str, str] = field(default_factory=dict)
    ended: bool = True

    def add(self, test_id: str, status: TestStatus, message: str = "") -> None:
        """Adds the end of one test."""
        if test_id in self.statuses:
            status, message = TestStatus.ERROR, "it was reported more than once"
        self.statuses[test_id] = status
        if message:
            self.messages[test_id] = " ".join(message.split())[:_MAX_MESSAGE_CHARS]

    def update(self, other: "Outcomes", prefix: str = "") -> None:
        """Adds all that another text says, with something in front of its ids."""
        for test_id, status in other.statuses.items():
            self.add(prefix + test_id, status, other.messages.get(test_id, ""))
        self.ended &= other.ended
