"""Everything that ends a run, under one root."""


class MillraceError(Exception):
    """The root of all errors that are the user's to mend; the text is one line."""


class JobFileError(MillraceError):
    """A job file cannot be read or does not make sense."""


class CycleError(JobFileError):
    """Jobs wait for each other."""


class JobFailed(MillraceError):
    """An action could not do its work."""
