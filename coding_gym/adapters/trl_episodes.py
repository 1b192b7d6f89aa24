"""TRL's ``GRPOTrainer(rollout_func=…)``: whole episodes, played at the same time.

    rollouts = EpisodeRollouts(tokenizer, tasks="bundled", max_turns=30)
    trainer = GRPOTrainer(
        model,
        processing_class=tokenizer,
        train_dataset=Dataset.from_list(rollouts.rows()),
        rollout_func=rollouts,
        reward_funcs=rollouts.reward,
    )

The environment reads the calls here, in any of its tool formats, and a malformed one is answered
like any other fault of the policy. Commands and grades of a batch run at the same time.
"""

import asyncio
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

from coding_gym.agents.chat import Sampling
from coding_gym.agents.hf import HuggingFaceAgent
from coding_gym.arguments import at_least_one
from coding_gym.episode import EpisodeFactory
from coding_gym.errors import InvalidArgumentError
from coding_gym.optional import import_optional
from coding_gym.rollout.runner import Runner
from coding_gym.trajectory import Trajectory


class EpisodeRollouts:
    """A ``rollout_func`` of TRL that plays an episode for each prompt.

    Replies are sampled from the trainer's model in this process, by ``generate`` of transformers
    and at the trainer's temperature, top_p, top_k and min_p. Each is trained on by the very ids
    that were sampled; what tools answer is masked.

    Args:
        processing_class: The trainer's tokenizer, with a chat template.
        concurrency: Episodes at one time; by default all of a batch.
        seed: Decides, with the task and the number of the attempt, what is sampled.
        on_done: Called with the record of every episode, as it ends, by one thread at a time.
        **episode: Arguments of `EpisodeFactory.from_config`: tasks, toolset, limits, and so on, but
            for ``tokenizer``.

    Raises:
        InvalidArgumentError, UnknownNameError, InvalidTaskError: As `EpisodeFactory.from_config`.
    """

    def __init__(
        self,
        processing_class: Any,
        *,
        concurrency: int | None = None,
        seed: int = 0,
        on_done: Callable[[Trajectory], None] = lambda _: None,
        **episode: Any,
    ) -> None:
        if "tokenizer" in episode:
            raise InvalidArgumentError("episodes have the trainer's tokenizer; omit tokenizer")
        self._folder = tempfile.TemporaryDirectory(prefix="coding_gym-tokenizer-")
        processing_class.save_pretrained(self._folder.name)
        self._factory = EpisodeFactory.from_config(**episode, tokenizer=f"hf:{self._folder.name}")
        self._tasks = {task.task_id: task for task in self._factory.tasks}
        if concurrency is not None:
            at_least_one("concurrency", concurrency)
        self._concurrency = concurrency
        self._seed, self._on_done = seed, on_done
        self._attempts: Counter[str] = Counter()

    def rows(self) -> list[dict[str, Any]]:
        """Returns the rows of a ``train_dataset``, one per task, whose ``prompt`` is its name.

        The episode itself begins with the system prompt, the tools and the report.
        """
        return [{"prompt": [{"role": "user", "content": name}]} for name in self._tasks]

    def reward(self, *, episode_reward: Sequence[float | None], **_: Any) -> list[float | None]:
        """Returns the rewards of the episodes; None where our own side failed."""
        return list(episode_reward)

    def __call__(
        self, prompts: Sequence[Sequence[Mapping[str, str]]], trainer: Any
    ) -> dict[str, list[Any]]:
        """Plays an episode for each prompt.

        Returns:
            For each prompt, in order, ``prompt_ids``, ``completion_ids``, ``logprobs``,
            ``env_mask`` (1 on ids that were sampled), ``episode_reward`` (a float, or None) and
            ``trajectory``, the record as a JSON object.

        Raises:
            InvalidArgumentError: A prompt is none of `rows`.
            SandboxUnavailableError: This machine cannot run the sandbox.
        """
        attempts = [self._attempt(prompt) for prompt in prompts]
        played: dict[tuple[str, int], Trajectory] = {}

        def keep(trajectory: Trajectory) -> None:
            played[trajectory.task_id, trajectory.attempt] = trajectory
            self._on_done(trajectory)

        with _generating(trainer) as model:
            player = HuggingFaceAgent(self._folder.name, _sampling(trainer.args), loaded=model)
            runner = Runner(
                factory=self._factory,
                player=player,
                concurrency=self._concurrency or len(attempts),
                seed=self._seed,
            )
            todo = [(self._tasks[name], number) for name, number in attempts]
            with ThreadPoolExecutor(1) as thread:  # a notebook has an event loop of its own
                thread.submit(lambda: asyncio.run(runner.run(todo, keep))).result()
        found = [self._example(played[attempt]) for attempt in attempts]
        return {name: [one[name] for one in found] for name in found[0]}

    def _attempt(self, prompt: Sequence[Mapping[str, str]]) -> tuple[str, int]:
        name = prompt[-1]["content"]
        if name not in self._tasks:
            raise InvalidArgumentError(
                f"a prompt must be the name of a task, from EpisodeRollouts.rows, got {name[:80]!r}"
            )
        number = self._attempts[name]
        self._attempts[name] += 1
        return name, number

    def _example(self, trajectory: Trajectory) -> dict[str, Any]:
        is_lost = bool(trajectory.error_class)
        example = {} if is_lost else trajectory.to_training_example()
        if not example.get("completion_ids"):  # TRL takes no empty completion
            end = self._factory.tokenizer.pad_id
            example = {"prompt_ids": [end], "completion_ids": [end]}
            example |= {"env_mask": [0], "logprobs": [0.0]}
        example.pop("exact", None)
        reward = None if is_lost else trajectory.total_reward
        return {**example, "episode_reward": reward, "trajectory": trajectory.to_json()}


def _sampling(arguments: Any) -> Sampling:
    return Sampling(
        temperature=arguments.temperature,
        top_p=arguments.top_p,
        top_k=arguments.top_k or None,
        min_p=arguments.min_p,
        max_tokens=arguments.max_completion_length,
    )


@contextmanager
def _generating(trainer: Any) -> Iterator[Any]:
    """Gives the trainer's model in the state in which it generates, and restores it."""
    models = import_optional("trl.models", "'coding-gym[trl]'")
    gathers = trainer.args.ds3_gather_for_generation
    with models.unwrap_model_for_generation(
        trainer.model_wrapped, trainer.accelerator, gather_deepspeed3_params=gathers
    ) as model:
        config, is_training = model.generation_config, model.training
        model.eval()
        try:
            yield model
        finally:
            model.generation_config = config
            model.train(is_training)
