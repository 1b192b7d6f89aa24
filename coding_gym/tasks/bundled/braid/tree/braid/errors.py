"""What can be wrong with a patch."""


class BraidError(ValueError):
    """The root of all errors."""


class PatchError(BraidError):
    """A patch cannot be read; names the line."""


class HunkError(BraidError):
    """A hunk does not fit the text.

    Attributes:
        number: which one, counted from 1.
    """

    def __init__(self, message: str, number: int = 0) -> None:
        super().__init__(message)
        self.number = number
