"""Repair episodes as a text environment of SkyRL.

    pip install skyrl-gym -e .    # in a clone, with SkyRL's trainer installed
    environment: {env_class: coding_repair, skyrl_gym: {coding_repair: {tool_format: hermes}}}

Import this file in the Ray task of your entry point: it registers the environment. Add a column
``env_class`` of ``coding_repair`` to the rows of `coding_gym.adapters.trl.prompt_rows`.
"""

from collections.abc import Mapping
from typing import Any

import skyrl_gym
from omegaconf import OmegaConf
from skyrl_gym.envs.base_text_env import BaseTextEnv, BaseTextEnvStepOutput

from coding_gym.adapters.session import Session, task_options

ENV_CLASS = "coding_repair"


class RepairTextEnv(BaseTextEnv):
    """One repair episode; ``env_config`` has `Session`'s arguments, ``extras`` is the row."""

    def __init__(self, env_config: Any = None, extras: Mapping[str, Any] | None = None) -> None:
        super().__init__()
        settings: Any = OmegaConf.to_container(OmegaConf.create(env_config or {}), resolve=True)
        row = dict(extras or {})
        turns = [fields["max_turns"] for fields in (settings, row) if fields.get("max_turns")]
        settings["max_turns"] = self.max_turns = min(turns, default=30)
        self._options = task_options(row)
        self._session = Session(**settings)

    def init(self, prompt: list[dict[str, Any]]) -> tuple[list[dict[str, Any]], dict[str, Any]]:
        """Starts the episode and returns its opening messages, which replace ``prompt``."""
        self._session.start(**self._options)
        return self._session.messages or prompt, self._session.summary()

    def step(self, action: str) -> BaseTextEnvStepOutput:
        """Plays one reply; skip the episode if ``mask_sample`` is set in its metadata."""
        session = self._session
        if not session.ended:  # `init` ends the episode if no sandbox could be opened
            session.step(action)
        self.turns += 1
        observations = [] if session.ended else session.messages
        return BaseTextEnvStepOutput(
            observations=observations,
            reward=session.reward or 0.0,
            done=session.ended,
            metadata=session.summary(),
        )

    def close(self) -> None:
        """Frees the sandbox."""
        self._session.close()


skyrl_gym.register(id=ENV_CLASS, entry_point=f"{__name__}:RepairTextEnv")
