"""Repair episodes as a text environment of GEM.

    pip install gem-llm -e .    # in a clone
    env = gem.make("coding_gym:Repair-v0", tasks="bundled", max_turns=30)

Import this file first: it registers the environment. Skip an episode whose ``info["mask_sample"]``
is set: an infrastructure failure ended it.
"""

from typing import Any

import gem
from gem.core import Env

from coding_gym.adapters.session import Session
from coding_gym.envs.snapshot import snapshot

ENV_ID = "coding_gym:Repair-v0"


class RepairEnv(Env):
    """Plays repair episodes one after another; ``session`` are arguments of `Session`."""

    def __init__(self, seed: int | None = None, **session: Any) -> None:
        super().__init__()
        self._seed, self._settings = seed, session
        self._session = Session(**session)

    def reset(self, seed: int | None = None) -> tuple[str, dict[str, Any]]:
        """Starts an episode; the seed chooses the task and does not seed global generators."""
        self._session.start(seed=self._seed if seed is None else seed)
        self._seed = None
        text = "\n\n".join(message["content"] for message in self._session.messages)
        return text, self._session.summary()

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """Plays one reply of the policy."""
        session = self._session
        if session.failure is None:
            session.step(action)
        truncated = session.ended and not session.terminated
        reward = session.reward or 0.0  # None after an infrastructure failure
        return session.text, reward, session.terminated, truncated, session.summary()

    def spawn(self, same_state: bool = False, **kwargs: Any) -> "RepairEnv":
        """Returns another environment, with a copy of the running episode if ``same_state``."""
        copy = RepairEnv(**{"seed": self._seed, **self._settings, **kwargs})
        if same_state:
            copy._session.start(snapshot=snapshot(self._session.env))
        return copy


gem.register(ENV_ID, RepairEnv)
