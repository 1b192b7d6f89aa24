"""Message queues with leases, retries and dead letters, in one process."""

from postbox.broker import Broker
from postbox.clock import ManualClock
from postbox.errors import PostboxError, StaleReceipt, UnknownQueue
from postbox.message import DeadLetter, Delivery
from postbox.queue import Queue
from postbox.retry import RetryPolicy
from postbox.worker import Worker

__all__ = [
    "Broker",
    "DeadLetter",
    "Delivery",
    "ManualClock",
    "PostboxError",
    "Queue",
    "RetryPolicy",
    "StaleReceipt",
    "UnknownQueue",
    "Worker",
]
