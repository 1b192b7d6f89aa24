"""What can go wrong with queues."""


class PostboxError(Exception):
    """The root of all errors."""


class UnknownQueue(PostboxError, LookupError):
    """There is no queue of that name."""


class StaleReceipt(PostboxError, LookupError):
    """A receipt is for a delivery that has been settled, or whose lease has ended."""
