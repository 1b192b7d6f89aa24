"""A running sandbox, as its owner holds it: who may use it, whether it is closed, why it died."""

import contextlib
import os
import threading
from collections.abc import Iterator

from coding_gym.errors import SandboxError


class OwnerHandle:
    """A way to a sandbox, for one call at a time, in the process that opened it.

    A failure of a call is the sandbox's end: from then on every call says why.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._owner = os.getpid()
        self._is_closed = False
        self._why_dead = ""

    def require_open(self) -> None:
        """Raises SandboxError where a call would, without one."""
        if os.getpid() != self._owner:
            raise SandboxError("the sandbox belongs to the process that opened it; open another")
        if self._is_closed or self._why_dead:
            raise SandboxError(self._why_dead or "the sandbox is closed")

    def give_up(self, reason: str) -> SandboxError:
        """Returns the error that this and every later call raises."""
        self._why_dead = reason
        return SandboxError(reason)

    @contextlib.contextmanager
    def _in_use(self) -> Iterator[None]:
        """Lets one call through at a time.

        Raises:
            SandboxError: In place of what says that the sandbox is gone or makes no sense.
        """
        self.require_open()
        with self._lock:
            self.require_open()
            try:
                yield
            except (OSError, EOFError, ValueError) as error:
                is_closed = self._is_closed
                reason = "the sandbox is closed" if is_closed else f"the sandbox died: {error}"
                raise self.give_up(reason) from error
            except BaseException:
                # The answer may still come, and would be taken for that of the next call.
                self._why_dead = "a call was interrupted"
                raise
