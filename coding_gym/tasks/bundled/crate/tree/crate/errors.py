"""What can be wrong with a file, and with a value."""


class CrateError(Exception):
    """The root of all errors."""


class CorruptError(CrateError):
    """A file is damaged, cut short, or no crate at all."""


class ValueTypeError(CrateError, TypeError):
    """A value cannot be kept."""
