"""SkyRL: a text environment of skyrl-gym. Importing this needs the extra ``skyrl``.

    register()
    env = skyrl_gym.make("coding_repair", env_config={"max_turns": 30}, extras={"task_id": "…"})
    messages, _ = env.init(prompt)

SkyRL makes an environment for each trajectory and calls it from a pool of threads.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from coding_gym.adapters import trl
from coding_gym.adapters.session import Session, task_options
from coding_gym.optional import missing_extra
from coding_gym.trajectory import Message

try:
    import skyrl_gym
    from omegaconf import OmegaConf
    from skyrl_gym.envs.base_text_env import BaseTextEnv, BaseTextEnvStepOutput
except ImportError as error:
    raise missing_extra("SkyRL-gym", "skyrl") from error

ENV_CLASS = "coding_repair"
"""The name of the environment in the column ``env_class``."""

_COUNTS = ("turn", "tool_calls")


class RepairTextEnv(BaseTextEnv):
    """One repair episode; the sandbox is closed with the last reference, also without `close`.

    Args:
        env_config: Arguments of `coding_gym.adapters.session.Session`, as a mapping or a config of
            OmegaConf: ``wrappers``, ``control_tokens``, and those of ``CodingRepair-v0``.
        extras: Columns of the dataset's row: ``task_id`` or ``task``, and ``max_turns``, which
            SkyRL adds; the smaller ``max_turns`` ends the episode.

    Raises:
        InvalidArgumentError, UnknownNameError, UnknownTaskError, InvalidTaskError: An argument
            cannot be used.
    """

    def __init__(
        self, env_config: Any = None, extras: Mapping[str, Any] | None = None, **_: Any
    ) -> None:
        super().__init__()
        config = OmegaConf.to_container(OmegaConf.create(env_config or {}), resolve=True)
        settings: dict[str, Any] = dict(config)
        row = dict(extras or {})
        bounds = [one["max_turns"] for one in (settings, row) if one.get("max_turns")]
        if bounds:
            settings["max_turns"] = self.max_turns = min(bounds)
        self._options = task_options(row)
        self._session = Session(**settings)

    def init(self, prompt: Sequence[Message]) -> tuple[list[Message], dict[str, Any]]:
        """Starts the episode and returns its opening messages, which replace ``prompt``.

        Raises:
            UnknownTaskError, InvalidTaskError: The row's task cannot be used.
        """
        self._session.start(**self._options)
        return self._session.messages or list(prompt), self._session.summary()

    def step(self, action: str) -> BaseTextEnvStepOutput:
        """Plays one reply of the policy.

        Returns:
            The new messages, the reward (0.0 where our own side failed: SkyRL has no mask), whether
            the episode is over, and as ``metadata`` the fields of `Session.summary`.
        """
        session = self._session
        if not session.ended:  # else it could not be opened
            session.step(action)
        self.turns += 1
        return BaseTextEnvStepOutput(
            observations=[] if session.ended else session.messages,
            reward=session.reward or 0.0,
            done=session.ended,
            metadata=session.summary(),
        )

    def get_metrics(self) -> dict[str, Any]:
        """Returns numbers that SkyRL averages: turns, calls, lost episodes, and the resolved rate.

        An episode that our own side lost does not count in the rate.
        """
        info = self._session.info
        metrics = {name: info[name] for name in _COUNTS if name in info}
        is_lost = bool(info.get("mask_sample"))
        if "resolved" in info and not is_lost:
            metrics["resolved"] = float(info["resolved"])
        return {**metrics, "lost": float(is_lost)}

    def close(self) -> None:
        """Frees the sandbox; idempotent."""
        self._session.close()


def register() -> None:
    """Makes the environment known to skyrl-gym in this process; idempotent."""
    if ENV_CLASS not in skyrl_gym.registry:
        entry_point = f"{RepairTextEnv.__module__}:{RepairTextEnv.__name__}"
        skyrl_gym.register(id=ENV_CLASS, entry_point=entry_point)


def rows(tasks: Any = "bundled", **chosen: Any) -> list[dict[str, Any]]:
    """Returns the rows of a dataset for SkyRL: ``prompt``, ``env_class`` and ``task_id`` per task.

    Args:
        tasks: As for ``CodingRepair-v0``.
        **chosen: Further arguments of `coding_gym.adapters.trl.prompt_rows`.

    Raises:
        UnknownTaskError, InvalidTaskError, UnknownNameError: As `prompt_rows` does.
    """
    return [{**row, "env_class": ENV_CLASS} for row in trl.prompt_rows(tasks, **chosen)]
