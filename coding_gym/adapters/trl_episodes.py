"""TRL's ``GRPOTrainer(rollout_func=…)``: plays whole episodes at the same time.

    rollouts = EpisodeRollouts(tokenizer, tasks="bundled", max_turns=30)
    trainer = GRPOTrainer(
        model,
        processing_class=tokenizer,
        train_dataset=Dataset.from_list(rollouts.rows()),
        rollout_func=rollouts,
        reward_funcs=rollouts.reward,
    )

The environment parses the calls, in any of its tool formats, and reports a malformed call to the
policy. Commands and grades of a batch run at the same time.

The model generates in this process, as in TRL without vLLM; several processes can train the
model with DDP. With vLLM, DeepSpeed or FSDP use `coding_gym.adapters.trl.environment_factory`.
"""

import shutil
import weakref
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from coding_gym.adapters.samples import longest_segment
from coding_gym.agents.chat import Sampling
from coding_gym.agents.harness import Harness, HarnessPlayer
from coding_gym.agents.hf import HuggingFaceAgent
from coding_gym.agents.model_errors import ModelError
from coding_gym.arguments import at_least_one
from coding_gym.episode import EpisodeConfig
from coding_gym.errors import InvalidArgumentError
from coding_gym.optional import import_extra
from coding_gym.rollout.runner import Runner, run_in_thread
from coding_gym.sandbox.ownership import make_folder
from coding_gym.text.chat import get_chat
from coding_gym.text.tokenizers import get_tokenizer
from coding_gym.tools import get_toolset
from coding_gym.trajectory import LASTING_ERROR_CLASSES, Trajectory


class EpisodeRollouts:
    """A ``rollout_func`` of TRL that plays an episode for each prompt.

    ``generate`` of transformers samples the replies from the trainer's model, with the trainer's
    temperature, top_p, top_k and min_p. The training uses exactly the sampled ids; results of tools
    are masked.

    Args:
        processing_class: The trainer's tokenizer, with a chat template.
        harness: A command-line agent that plays the episodes in their sandboxes. TRL takes one
            sequence per prompt: if the agent rewrites its history, the sequence is the segment
            with the most sampled ids, the last segment on a tie.
        concurrency: Maximum number of simultaneous episodes; by default all of a batch.
        seed: Seeds the sampling, together with the task and the number of the attempt.
        on_done: Called with the record of every ended episode, by one thread at a time, except for
            episodes whose model failed; the training then stops. The tokenizer in the record is
            ``processing_class.name_or_path``, if known.
        **episode: Arguments of `EpisodeConfig.from_config`, except ``tokenizer``.

    Raises:
        InvalidArgumentError, UnknownNameError, InvalidTaskError: An argument cannot be used, or the
            tokenizer has no usable chat template.
    """

    def __init__(
        self,
        processing_class: Any,
        *,
        harness: Harness | None = None,
        concurrency: int | None = None,
        seed: int = 0,
        on_done: Callable[[Trajectory], None] = lambda _: None,
        **episode: Any,
    ) -> None:
        if "tokenizer" in episode:
            raise InvalidArgumentError("episodes use the trainer's tokenizer; omit tokenizer")
        self._folder = str(make_folder("tokenizer"))  # a later process removes it after a crash
        weakref.finalize(self, shutil.rmtree, self._folder, ignore_errors=True)
        processing_class.save_pretrained(self._folder)
        self._name = getattr(processing_class, "name_or_path", "") or self._folder
        self._config = EpisodeConfig.from_config(**episode, tokenizer=f"hf:{self._folder}")
        self._tokenizer = get_tokenizer(self._config.tokenizer)
        schemas = get_toolset(self._config.toolset).schemas
        get_chat(self._tokenizer, schemas, self._config.tool_format)  # raises now, not at a prompt
        self._tasks = {task.task_id: task for task in self._config.tasks}
        if concurrency is not None:
            at_least_one("concurrency", concurrency)
        self._harness, self._concurrency = harness, concurrency
        self._seed, self._on_done = seed, on_done
        self._attempts: Counter[str] = Counter()

    def rows(self) -> list[dict[str, Any]]:
        """Returns one row per task; its ``prompt`` is a list with one user message, the task's id.

        The model gets the system prompt, the tools and the issue of the task instead.
        """
        return [{"prompt": [{"role": "user", "content": name}]} for name in self._tasks]

    def reward(
        self,
        *,
        episode_reward: Sequence[float | None],
        trajectory: Sequence[Mapping[str, Any]] = (),
        trained_part: Sequence[float] = (),
        log_metric: Callable[[str, float], None] = lambda *_: None,
        **_: Any,
    ) -> list[float | None]:
        """Returns a reward for each episode: None after an infrastructure failure.

        Logs the rates ``infra_failed`` and ``hacked``; with a harness also ``harness/trained``, the
        mean fraction of an episode's sampled ids that the training uses.
        """
        grades = [record.get("grade") or {} for record in trajectory]
        if grades:
            log_metric("hacked", sum(bool(grade.get("hacked")) for grade in grades) / len(grades))
        if episode_reward:
            num_failed = sum(reward is None for reward in episode_reward)
            log_metric("infra_failed", num_failed / len(episode_reward))
        if self._harness is not None and trained_part:
            log_metric("harness/trained", sum(trained_part) / len(trained_part))
        return list(episode_reward)

    def __call__(
        self, prompts: Sequence[Sequence[Mapping[str, str]]], trainer: Any
    ) -> dict[str, list[Any] | None]:
        """Plays an episode for each prompt.

        Returns:
            Lists with an entry for each prompt, in order: ``prompt_ids``, ``completion_ids``,
            ``env_mask`` (1 on sampled ids), ``trained_part`` (trained share of the sampled ids),
            ``episode_reward`` (a float, or None) and ``trajectory`` (the record as a JSON object).
            ``logprobs`` is None: TRL computes them.

        Raises:
            InvalidArgumentError: A prompt is not from `rows`, or a setting of the trainer is not
                supported.
            ModelError: The model or the agent failed.
            SandboxUnavailableError: This machine cannot run the sandbox.
        """
        _check(trainer)
        attempts = [self._attempt(prompt, trainer.accelerator) for prompt in prompts]
        records: dict[tuple[str, int], Trajectory] = {}

        def add(trajectory: Trajectory) -> None:
            records[trajectory.task_id, trajectory.attempt] = trajectory
            if trajectory.error_class not in LASTING_ERROR_CLASSES:
                self._on_done(replace(trajectory, tokenizer=f"hf:{self._name}", model=self._name))

        with _generating(trainer) as model:
            agent = HuggingFaceAgent(self._folder, _sampling(trainer.args), loaded=model)
            runner = Runner(
                config=self._config,
                player=HarnessPlayer(self._harness, agent) if self._harness else agent,
                concurrency=self._concurrency or len(attempts),
                seed=self._seed,
            )
            pairs = [(self._tasks[name], number) for name, number in attempts]
            run_in_thread(runner.run(pairs, add))
        examples = [self._example(records[attempt]) for attempt in attempts]
        columns = {name: [example[name] for example in examples] for name in examples[0]}
        return {"logprobs": None, **columns}

    def _attempt(self, prompt: Sequence[Mapping[str, str]], accelerator: Any) -> tuple[str, int]:
        name = prompt[-1]["content"]
        if name not in self._tasks:
            raise InvalidArgumentError(
                f"a prompt must be a task id from EpisodeRollouts.rows, got {name[:80]!r}"
            )
        number = self._attempts[name]
        self._attempts[name] += 1
        # Attempts of all processes have different numbers, so that their seeds differ.
        return name, number * accelerator.num_processes + accelerator.process_index

    def _example(self, trajectory: Trajectory) -> dict[str, Any]:
        if trajectory.error_class in LASTING_ERROR_CLASSES:
            raise ModelError(trajectory.error, trajectory.error_class)
        reward = None if trajectory.error_class else trajectory.total_reward
        example = longest_segment(trajectory, self._tokenizer.pad_id)
        del example["logprobs"]  # TRL computes them
        return {**example, "episode_reward": reward, "trajectory": trajectory.to_json()}


def _check(trainer: Any) -> None:
    """Raises InvalidArgumentError for settings of a trainer that are not supported."""
    arguments = trainer.args
    settings = {
        "use_vllm": arguments.use_vllm,
        "use_transformers_continuous_batching": arguments.use_transformers_continuous_batching,
        "repetition_penalty": arguments.repetition_penalty != 1.0,
        "generation_kwargs": bool(arguments.generation_kwargs),
        "chat_template_kwargs": bool(arguments.chat_template_kwargs),
        "DeepSpeed": trainer.is_deepspeed_enabled,
        "FSDP": trainer.is_fsdp_enabled,
    }
    names = ", ".join(name for name, is_set in settings.items() if is_set)
    if names:
        raise InvalidArgumentError(
            f"EpisodeRollouts does not support {names}; use environment_factory"
        )


def _sampling(arguments: Any) -> Sampling:
    # None would select the value of the model's generation config.
    return Sampling(
        temperature=arguments.temperature,
        top_p=arguments.top_p,
        top_k=arguments.top_k or 0,
        min_p=arguments.min_p or 0.0,
        max_tokens=arguments.max_completion_length,
    )


@contextmanager
def _generating(trainer: Any) -> Iterator[Any]:
    """Yields the trainer's model, ready to generate, and restores its state afterwards."""
    models = import_extra("trl.models", "trl")
    with models.unwrap_model_for_generation(
        trainer.model_wrapped,
        trainer.accelerator,
        gradient_checkpointing_kwargs=trainer.args.gradient_checkpointing_kwargs,
    ) as model:
        base_models = [model.get_base_model()] if hasattr(model, "get_base_model") else []
        configs = [(layer, layer.generation_config) for layer in (model, *base_models)]
        is_training = model.training
        model.eval()
        try:
            yield model
        finally:
            for layer, config in configs:
                layer.generation_config = config
            model.train(is_training)
