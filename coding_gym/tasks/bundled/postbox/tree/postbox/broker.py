"""Queues by name, and topics that they subscribe to."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy
from typing import Any

from postbox.clock import Clock
from postbox.dedup import SeenKeys
from postbox.errors import UnknownQueue
from postbox.outbox import Outbox, Post
from postbox.queue import Queue
from postbox.retry import RetryPolicy


class Broker:
    """Queues by name, and topics that they subscribe to.

    Args:
        clock: gives the time, to all queues.
        remember: how long the keys of messages are remembered, in seconds.
    """

    def __init__(self, *, clock: Clock = time.monotonic, remember: float = 300.0) -> None:
        self._clock = clock
        self._queues: dict[str, Queue] = {}
        self._subscribers: dict[str, list[str]] = {}
        self._seen = SeenKeys(remember, clock)
        self._outboxes: list[Outbox] = []

    def queue(self, name: str, *, lease: float = 30.0, retry: RetryPolicy | None = None) -> Queue:
        """The queue of that name; made with these settings if there is none."""
        if name not in self._queues:
            self._queues[name] = Queue(lease=lease, retry=retry, clock=self._clock)
        return self._queues[name]

    def existing(self, name: str) -> Queue:
        """The queue of that name.

        Raises:
            UnknownQueue: if there is none.
        """
        if name not in self._queues:
            raise UnknownQueue(f"there is no queue {name!r}")
        return self._queues[name]

    def subscribe(self, topic: str, queue: str) -> None:
        """Lets a queue have all that is published to a topic.

        Raises:
            UnknownQueue: if there is no such queue.
        """
        self.existing(queue)
        names = self._subscribers.setdefault(topic, [])
        if queue not in names:
            names.append(queue)

    def publish(
        self,
        topic: str,
        body: Any,
        *,
        key: str | None = None,
        priority: int = 0,
        delay: float = 0.0,
    ) -> None:
        """Puts a message in all queues that subscribe to a topic, or holds it in the outbox."""
        post = Post(topic, deepcopy(body), key, priority, delay)
        if self._outboxes:
            self._outboxes[-1].hold(post)
        else:
            self._send(post)

    @contextmanager
    def outbox(self) -> Iterator[None]:
        """Holds back what is published in a ``with`` block until it ends well."""
        outbox = Outbox()
        self._outboxes.append(outbox)
        try:
            yield
        finally:
            self._outboxes.pop()
        outbox.release(self._outboxes[-1].hold if self._outboxes else self._send)

    def _send(self, post: Post) -> None:
        if post.key is not None and not self._seen.is_new(post.topic, post.key):
            return
        for name in self._subscribers.get(post.topic, ()):
            self._queues[name].put(post.body, priority=post.priority, delay=post.delay)
