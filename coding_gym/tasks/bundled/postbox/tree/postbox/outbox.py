"""Messages on their way to a topic, and where they are held back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Post:
    """A message that was published, and how it is to be put in the queues."""

    topic: str
    body: Any
    key: str | None
    priority: int
    delay: float


@dataclass(slots=True)
class Outbox:
    """Posts that are held back until it is known whether they shall be sent."""

    posts: list[Post] = field(default_factory=list)

    def hold(self, post: Post) -> None:
        """Keeps a post."""
        self.posts.append(post)

    def release(self, send: Callable[[Post], None]) -> None:
        """Sends everything, in the order in which it was published."""
        for post in self.posts:
            send(post)
