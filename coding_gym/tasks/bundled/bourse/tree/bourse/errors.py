"""What can go wrong."""


class BourseError(ValueError):
    """Something was asked for that the bourse does not do."""


class OrderError(BourseError):
    """An order that is impossible, unknown, or there already."""


class JournalError(BourseError):
    """A line of a journal that cannot be read."""
