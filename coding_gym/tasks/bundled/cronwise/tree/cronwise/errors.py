"""What can be wrong with an expression or a zone."""


class CronError(ValueError):
    """An expression or a zone is malformed."""


class NeverRunsError(CronError):
    """An expression is well-formed, but no day matches it, such as 30 February."""
