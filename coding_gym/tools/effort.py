"""A work budget, so that results do not depend on timing."""

from dataclasses import dataclass


@dataclass(slots=True)
class Effort:
    """A budget of work.

    Attributes:
        left: What may still be spent, in a unit that its owner names.
    """

    left: int

    def spend(self, work: int) -> bool:
        """Takes work from the budget, or takes nothing and returns False where it is too much."""
        if work > self.left:
            return False
        self.left -= work
        return True
