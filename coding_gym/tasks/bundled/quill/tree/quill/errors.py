"""What can go wrong."""


class QuillError(Exception):
    """The root of all errors."""


class PositionError(QuillError, IndexError):
    """A position is not in the text."""


class GroupError(QuillError, RuntimeError):
    """Something is not possible in a group."""
