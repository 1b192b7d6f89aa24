"""TRL's ``GRPOTrainer(rollout_func=…)`` with any agent as the policy's loop.

    rollouts = CaptureRollouts(tokenizer, play, tasks="bundled", max_turns=30)
    trainer = GRPOTrainer(
        model,
        processing_class=tokenizer,
        train_dataset=Dataset.from_list(rollouts.rows()),
        rollout_func=rollouts,
        reward_funcs=rollouts.reward,
    )

``play(episode, endpoint)`` is as for `coding_gym.adapters.capture.CapturePlayer`; the endpoint
replies by the trainer's own model.
"""

from collections.abc import Callable, Sequence
from typing import Any

from coding_gym.adapters.capture import CapturePlayer, HarnessFunction, segments
from coding_gym.adapters.trl_episodes import EpisodeRollouts
from coding_gym.agents.hf import HuggingFaceAgent
from coding_gym.agents.live_episode import Player
from coding_gym.trajectory import Trajectory


class CaptureRollouts(EpisodeRollouts):
    """A ``rollout_func`` of TRL in which an agent of any project plays an episode for each prompt.

    Each reply is trained on by the very ids that were sampled. TRL takes one sequence per prompt,
    so that of an episode of several segments the one with the most sampled ids is trained on, the
    later of equals; its reward is the episode's. `reward` logs as metrics how many segments an
    episode has (``capture/segments``) and the part of the sampled ids that is trained on
    (``capture/trained``).

    Args:
        processing_class: The trainer's tokenizer, with a chat template.
        harness: Plays one episode; called in a thread, for many episodes at the same time.
        **options: As for `EpisodeRollouts`. The toolset is the agent's own.

    Raises:
        InvalidArgumentError, UnknownNameError, InvalidTaskError: As `EpisodeRollouts`.
        MissingDependencyError: FastAPI or uvicorn is not installed.
    """

    def __init__(self, processing_class: Any, harness: HarnessFunction, **options: Any) -> None:
        super().__init__(processing_class, **options)
        self._harness = harness

    def reward(
        self,
        *,
        episode_reward: Sequence[float | None],
        num_segments: Sequence[int] = (),
        trained_part: Sequence[float] = (),
        log_metric: Callable[[str, float], None] = lambda *_: None,
        **_: Any,
    ) -> list[float | None]:
        """Returns the rewards of the episodes; None after an infrastructure failure."""
        for name, values in (("segments", num_segments), ("trained", trained_part)):
            if values:
                log_metric(f"capture/{name}", sum(values) / len(values))
        return super().reward(episode_reward=episode_reward)

    def _player(self, agent: HuggingFaceAgent) -> Player:
        return CapturePlayer(self._harness, agent)

    def _sample(self, trajectory: Trajectory) -> dict[str, Any]:
        samples = segments(trajectory)
        return max(reversed(samples), key=lambda one: sum(one["env_mask"]), default={})

    def _example(self, trajectory: Trajectory) -> dict[str, Any]:
        example = super()._example(trajectory)
        counts = [sum(one["env_mask"]) for one in segments(trajectory)]
        part = sum(example["env_mask"]) / sum(counts) if any(counts) else 0.0
        return {**example, "num_segments": len(counts), "trained_part": part}
