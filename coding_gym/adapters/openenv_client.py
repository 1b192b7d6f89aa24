"""The client of `coding_gym.adapters.openenv`, and TRL through it.

with RepairClient(base_url="http://127.0.0.1:8000").sync() as client:
result = client.reset(task_id="cronwise-working-days")
result = client.step(RepairAction(text='{"name": "shell", "arguments": {"cmd": "ls"}}'))

GRPOTrainer(…, environment_factory=remote_factory("http://127.0.0.1:8000"))
"""

import weakref
from collections.abc import Callable
from functools import partial
from typing import Any

from coding_gym.action import Stop
from coding_gym.adapters.openenv import RepairAction, RepairObservation, RepairState
from coding_gym.adapters.session import LOST
from coding_gym.adapters.trl_rollout import Rollout, rollout_class
from coding_gym.errors import (
    EpisodeError,
    InvalidArgumentError,
    SandboxError,
)
from coding_gym.optional import missing_extra
from coding_gym.trajectory import StopReason

try:
    from openenv.core.client_types import StepResult
    from openenv.core.env_client import EnvClient
    from websockets.exceptions import ConnectionClosed
except ImportError as error:
    raise missing_extra("OpenEnv", "openenv") from error

_LOST = (OSError, TimeoutError, ConnectionClosed)
_CALLERS_FAULT = ("EXECUTION_ERROR", "VALIDATION_ERROR")  # OpenEnv's codes, in the error's text


class RepairClient(EnvClient[RepairAction, RepairObservation, RepairState]):
    """One connection to a server; ``sync()`` gives the same without ``await``."""

    def _step_payload(self, action: RepairAction) -> dict[str, Any]:
        return dict(action.model_dump(exclude={"metadata"}))

    def _parse_result(self, payload: dict[str, Any]) -> StepResult[RepairObservation]:
        ends = {"reward": payload.get("reward"), "done": payload.get("done", False)}
        return StepResult(RepairObservation(**payload["observation"], **ends), **ends)

    def _parse_state(self, payload: dict[str, Any]) -> RepairState:
        return RepairState(**payload)


class RemoteEpisodes:
    """The episodes of one connection, as `coding_gym.adapters.trl_rollout.Rollout` plays them.

    A server that cannot be reached costs the episode, which is masked, and not the training.

    Args:
        base_url: The server's address.
        timeout_s: Seconds that one reply of the server may take; a grade is part of the last one.

    Attributes:
        info: The fields of the last observation. Empty before `start`.
        ended: Whether the episode is over.
        failure: The failure that `start` met, if any.
    """

    def __init__(self, base_url: str, timeout_s: float = 600.0) -> None:
        self.info: dict[str, Any] = {}
        self.ended = False
        self.failure: SandboxError | None = None
        self._total = 0.0
        self._client = RepairClient(base_url=base_url, message_timeout_s=timeout_s).sync()
        self.close = weakref.finalize(self, self._client.close)

    @property
    def text(self) -> str:
        """The text that the last action made new, neutral."""
        return str(self.info["text"])

    @property
    def total_reward(self) -> float | None:
        """The sum of the rewards so far; None where our own side failed."""
        return None if self.info["mask_sample"] else self._total

    @property
    def toolset(self) -> str:
        """The name of the server's toolset."""
        return str(self._client.state().toolset)

    def start(self, **options: Any) -> None:
        """Starts an episode; options are those of the server's ``reset``.

        Raises:
            InvalidArgumentError: The server refuses the options.
        """
        self.info, self.ended, self.failure, self._total = {}, False, None, 0.0
        try:
            self._read(self._client.reset(**options))
        except (RuntimeError, *_LOST) as problem:
            if any(code in str(problem) for code in _CALLERS_FAULT):
                raise InvalidArgumentError(str(problem)) from problem
            self._fail(problem)

    def step(self, action: str) -> None:
        """Plays one action.

        Raises:
            EpisodeError: There is no running episode.
        """
        if not self.info or self.ended:
            raise EpisodeError("there is no running episode; call reset first")
        field = "stop" if isinstance(action, Stop) else "text"
        try:
            self._read(self._client.step(RepairAction(**{field: str(action)})))
        except (RuntimeError, *_LOST) as problem:  # also: a new connection has no episode
            self._fail(problem)

    def finish(self, why: str) -> None:
        """Ends the episode and has it graded, if it still runs."""
        if not self.ended:
            self.step(Stop(why))

    def _read(self, result: StepResult[RepairObservation]) -> None:
        self.info = result.observation.model_dump(exclude={"metadata"})
        self.ended = result.done
        self._total += float(result.reward or 0.0)

    def _fail(self, problem: Exception) -> None:
        self.failure, self.ended = SandboxError(f"the server was lost: {problem}"), True
        masked = {"stop_reason": str(StopReason.SANDBOX_ERROR), "mask_sample": True}
        texts = {"text": "" if self.info else LOST, "error": str(self.failure)}
        self.info = {**self.info, **texts, **masked}


def remote_factory(
    base_url: str, *, toolset: str = "nano", timeout_s: float = 600.0
) -> Callable[[], Rollout]:
    """Returns a value for ``GRPOTrainer(environment_factory=…)`` that plays on a server.

    Args:
        base_url: The server's address.
        toolset: The server's toolset, whose tools TRL is given.
        timeout_s: As for `RemoteEpisodes`.

    Raises:
        UnknownNameError: There is no such toolset.
    """
    rollout_class(toolset)
    return partial(_make, base_url, toolset, timeout_s)


def _make(base_url: str, toolset: str, timeout_s: float) -> Rollout:
    episodes = RemoteEpisodes(base_url, timeout_s)
    if episodes.toolset != toolset:
        raise InvalidArgumentError(
            f"the server at {base_url} has the toolset {episodes.toolset!r}, not {toolset!r}; "
            f"give toolset={episodes.toolset!r}"
        )
    return rollout_class(toolset)(episodes)
