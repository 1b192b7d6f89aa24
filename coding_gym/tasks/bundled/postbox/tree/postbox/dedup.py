"""Keys that have been seen lately."""

from __future__ import annotations

from postbox.clock import Clock


class SeenKeys:
    """Remembers keys for some time after they were first seen.

    Args:
        remember: how long, in seconds.
        clock: gives the time.
    """

    def __init__(self, remember: float, clock: Clock) -> None:
        self._remember = remember
        self._clock = clock
        self._seen: dict[tuple[str, str], float] = {}

    def is_new(self, topic: str, key: str) -> bool:
        """Whether a key was not seen lately; from now on it was."""
        now = self._clock()
        if self._seen.get((topic, key), now) > now:
            return False
        self._seen = {known: end for known, end in self._seen.items() if end > now}
        self._seen[topic, key] = now + self._remember
        return True
