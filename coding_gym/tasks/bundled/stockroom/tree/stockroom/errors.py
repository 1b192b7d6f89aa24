"""Everything that can be wrong with a list, under one root."""


class StockroomError(ValueError):
    """The root of all errors that are the lists' fault; the text is one line."""


class UnitError(StockroomError):
    """A quantity cannot be read, or units do not go together."""


class ListError(StockroomError):
    """A list cannot be read; names the file, and the row where there is one."""
