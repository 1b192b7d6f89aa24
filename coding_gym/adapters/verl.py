"""verl: an agent loop of repair episodes. Importing this needs the extra ``verl``.

    # the file in actor_rollout_ref.rollout.agent.agent_loop_config_path
    - name: coding_repair
      _target_: coding_gym.adapters.verl.RepairAgentLoop
      env: {tasks: bundled, max_turns: 30}

``HarnessAgentLoop`` runs a command-line agent in the sandbox: add ``harness: nano-agent``, or a
TOML file. It takes no ``wrappers``.

verl creates an agent loop for each trajectory and encodes the messages of the environment, with
mask 0. Sampled ids are not changed.
"""

import asyncio
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from uuid import uuid4

from coding_gym.action import Completion
from coding_gym.adapters.session import Session, outcome_metrics, refuse_sampler, task_options
from coding_gym.agents.capture import longest_segment
from coding_gym.agents.harness import get_harness
from coding_gym.agents.harness_player import HarnessPlayer
from coding_gym.agents.live_episode import ModelError, PromptTooLongError
from coding_gym.agents.local_chat import LocalModel
from coding_gym.episode import EpisodeConfig
from coding_gym.optional import missing_extra
from coding_gym.rollout.runner import Runner
from coding_gym.text import control_tokens
from coding_gym.trajectory import LASTING_ERROR_CLASSES, Message, ModelCall, Trajectory

try:
    from omegaconf import OmegaConf
    from verl.experimental.agent_loop.agent_loop import AgentLoopBase, AgentLoopOutput, register
    from verl.utils.profiler import simple_timer
except ImportError as error:
    raise missing_extra("verl", "verl") from error

NAME, HARNESS_NAME = "coding_repair", "coding_repair_harness"
"""The names of the agent loops in the column ``agent_name``."""

_VERSION = "max_global_steps"
"""The field of a reply with the version of the newest weights that sampled it."""

_Tokens = tuple[list[int], list[int], list[float] | None]
"""All ids so far; the mask of the ids after the prompt; their log-probabilities, if known."""


@register(NAME)
class RepairAgentLoop(AgentLoopBase):
    """Plays one repair episode with verl's rollout servers.

    Args:
        env: Arguments of `coding_gym.adapters.session.Session`: ``wrappers``, and those of
            ``CodingRepair-v0`` except ``sampler``.
        *args, **kwargs: The arguments of verl's agent loops.

    Raises:
        InvalidArgumentError, UnknownNameError, UnknownTaskError, InvalidTaskError: An argument
            cannot be used.
    """

    def __init__(self, *args: Any, env: Any = None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        settings: Any = OmegaConf.to_container(OmegaConf.create(env or {}), resolve=True)
        refuse_sampler(settings)
        tokens = control_tokens(self.processor or self.tokenizer)
        self._session = Session(control_tokens=tokens, **settings)

    async def run(self, sampling_params: dict[str, Any], **row: Any) -> AgentLoopOutput:
        """Plays an episode and returns its tokens, its mask and its reward.

        After an infrastructure failure the mask is 0 everywhere, the reward is 0.0, and
        ``extra_fields["mask_sample"]`` is True.

        Args:
            sampling_params: As for verl's servers.
            **row: The columns of the dataset, with ``task_id`` or ``task``, directly or in
                ``extra_info``.

        Raises:
            InvalidArgumentError, UnknownTaskError, InvalidTaskError: The row has no usable task.
        """
        session, metrics, extra = self._session, dict[str, Any](), dict[str, Any]()
        try:
            options = task_options({**(row.get("extra_info") or {}), **row})
            await asyncio.to_thread(session.start, **options)
            messages, tools = self._chat()
            tokens: _Tokens = await self.ct_build_initial_tokens(messages, tools=tools), [], None
            num_prompt, request_id = len(tokens[0]), uuid4().hex
            while not session.ended and len(tokens[1]) < self.rollout_config.response_length:
                with simple_timer("generate_sequences", metrics):
                    output = await self.server_manager.generate(
                        request_id=request_id, prompt_ids=tokens[0], sampling_params=sampling_params
                    )
                version = output.extra_fields.get(_VERSION)
                # The fields of the first reply, except the newest weights of the episode.
                extra = {**output.extra_fields, **extra}
                extra |= {} if version is None else {_VERSION: version}
                tokens = await self._after_reply(tokens, output)
                with simple_timer("tool_calls", metrics):
                    await asyncio.to_thread(session.step, _action(self.tokenizer, output))
                if not session.ended:
                    tokens = await self._after_results(tokens)
            with simple_timer("compute_score", metrics):
                await asyncio.to_thread(session.finish, "the response has its maximum length")
            return self._output(num_prompt, tokens, metrics, extra)
        finally:
            session.close()

    def _chat(self) -> tuple[list[Message], list[Any] | None]:
        """Returns the messages so far and the tools, for chat templates."""
        if self._session.failure is not None:
            return self._session.messages, None
        request = self._session.chat("transformers")
        return request["messages"], request.get("tools")

    async def _after_reply(self, tokens: _Tokens, output: Any) -> _Tokens:
        ids, mask, logprobs = tokens
        known_logprobs = (logprobs or []) if output.log_probs or logprobs else None
        merged, mask, logprobs = await self.ct_merge_assistant_token(
            ids, output.token_ids, mask, known_logprobs, assistant_logprobs=output.log_probs or None
        )
        return merged.token_ids, mask, logprobs

    async def _after_results(self, tokens: _Tokens) -> _Tokens:
        messages, tools = self._chat()
        is_reply = [message["role"] == "assistant" for message in messages]
        num_new = is_reply[::-1].index(True)
        merged, mask, logprobs = await self.ct_merge_context_msg(
            messages[: len(messages) - num_new], messages, *tokens, tools=tools
        )
        return merged.token_ids, mask, logprobs

    def _output(
        self, num_prompt: int, tokens: _Tokens, metrics: Mapping[str, Any], extra: Mapping[str, Any]
    ) -> AgentLoopOutput:
        ids, mask, logprobs = tokens
        session, length = self._session, self.rollout_config.response_length
        if session.total_reward is None or not mask:  # verl refuses an empty response
            mask = [0] * max(len(mask), 1)
        if logprobs is None and self.rollout_config.get("calculate_log_probs"):
            logprobs = [0.0] * len(mask)  # all samples of a batch have them, or none has
        return AgentLoopOutput(
            prompt_ids=ids[:num_prompt],
            response_ids=(ids[num_prompt:] or [self.tokenizer.eos_token_id])[:length],
            response_mask=mask[:length],
            response_logprobs=None if logprobs is None else logprobs[:length],
            reward_score=session.total_reward or 0.0,
            num_turns=2 * session.info["turn"] + 1,
            metrics=metrics,
            extra_fields={
                **extra,
                **session.summary(),
                "turn_scores": [],
                "tool_rewards": [],
                "reward_extra_info": session.metrics(),
            },
        )


@register(HARNESS_NAME)
class HarnessAgentLoop(AgentLoopBase):
    """Plays one repair episode with a command-line agent in the sandbox and verl's rollout servers.

    verl takes one sequence per episode: if the agent rewrites its history, this is the segment with
    the most sampled ids.

    Args:
        harness: The name of a preset, or a TOML file.
        env: Arguments of `EpisodeConfig.from_config`, except ``tokenizer``.
        *args, **kwargs: The arguments of verl's agent loops.

    Raises:
        InvalidArgumentError, UnknownNameError, UnknownTaskError, InvalidTaskError: An argument
            cannot be used.
    """

    def __init__(self, *args: Any, harness: str, env: Any = None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._settings: Any = OmegaConf.to_container(OmegaConf.create(env or {}), resolve=True)
        self._settings["tokenizer"] = f"hf:{self.tokenizer.name_or_path}"
        self._harness = get_harness(harness)

    async def run(self, sampling_params: dict[str, Any], **row: Any) -> AgentLoopOutput:
        """Plays an episode; arguments, result and errors are those of `RepairAgentLoop.run`."""
        options = task_options({**(row.get("extra_info") or {}), **row})
        is_named = "task_id" in options
        chosen = {"task_ids": [options["task_id"]]} if is_named else {"tasks": [options["task"]]}
        config = EpisodeConfig.from_config(**{**self._settings, **chosen})
        metrics: dict[str, Any] = {}
        model = _ServedModel(self, sampling_params, metrics)
        runner = Runner(config=config, player=HarnessPlayer(self._harness, model))
        with ThreadPoolExecutor(2) as threads:
            record = await runner.play(config.tasks[0], 0, threads)
        if record.error_class in LASTING_ERROR_CLASSES:
            raise ModelError(record.error, record.error_class)
        return self._output(record, metrics)

    def _output(self, record: Trajectory, metrics: Mapping[str, Any]) -> AgentLoopOutput:
        is_lost = bool(record.error_class)
        fitted, trained_part = self._fitted(record)
        if is_lost:
            fitted["response_mask"] = [0] * len(fitted["response_mask"])
        return AgentLoopOutput(
            **fitted,
            reward_score=0.0 if is_lost else record.total_reward,
            num_turns=2 * len(record.turns) + 1,
            metrics=metrics,
            extra_fields={
                "task_id": record.task_id,
                "stop_reason": record.stop_reason,
                "error": record.error,
                "mask_sample": is_lost,
                "resolved": record.resolved,
                "trained_part": 0.0 if is_lost else trained_part,
                "turn_scores": [],
                "tool_rewards": [],
                "reward_extra_info": outcome_metrics(record.grade, is_lost=is_lost),
            },
        )

    def _fitted(self, record: Trajectory) -> tuple[dict[str, Any], float]:
        """Returns the longest segment in verl's fields, and the fraction of the sampled ids there.

        verl pads prompts but does not truncate them, so the response starts with the end of a
        prompt that is too long.
        """
        config, end = self.rollout_config, [self.tokenizer.eos_token_id]
        nothing = {"prompt_ids": end, "completion_ids": end, "env_mask": [0], "trained_part": 0.0}
        best: dict[str, Any] = longest_segment(record) or nothing
        ids, logprobs = [*best["prompt_ids"], *best["completion_ids"]], best.get("logprobs")
        if logprobs is None and config.get("calculate_log_probs"):
            logprobs = [0.0] * len(best["env_mask"])
        num_prompt = min(len(best["prompt_ids"]), config.prompt_length)
        num_moved, length = len(best["prompt_ids"]) - num_prompt, config.response_length
        mask = [*[0] * num_moved, *best["env_mask"]][:length]
        fields = {
            "prompt_ids": ids[:num_prompt],
            "response_ids": ids[num_prompt:][:length],
            "response_mask": mask,
            "response_logprobs": logprobs and [*[0.0] * num_moved, *logprobs][:length],
        }
        return fields, best["trained_part"] * sum(mask) / max(sum(best["env_mask"]), 1)


class _ServedModel(LocalModel):
    """The trainer's model on verl's rollout servers, for one episode."""

    def __init__(
        self, loop: HarnessAgentLoop, sampling_params: dict[str, Any], metrics: dict[str, Any]
    ) -> None:
        self.model = loop.tokenizer.name_or_path
        self.tokenizer = f"hf:{self.model}"
        self._loop, self._sampling, self._metrics = loop, sampling_params, metrics
        self._request_id = uuid4().hex
        config = loop.rollout_config
        self._context = config.prompt_length + config.response_length

    async def reply(
        self,
        prompt_ids: list[int],
        max_tokens: int | None,  # noqa: ARG002 - verl limits the length of replies
        attempt_seed: int,  # noqa: ARG002 - verl's servers have the seeds
        turn: int,  # noqa: ARG002
    ) -> tuple[Completion, ModelCall]:
        if len(prompt_ids) >= self._context:
            raise PromptTooLongError(
                f"the prompt must have fewer than {self._context} tokens, got {len(prompt_ids)}"
            )
        begin_s = time.perf_counter()
        with simple_timer("generate_sequences", self._metrics):
            output = await self._loop.server_manager.generate(
                request_id=self._request_id, prompt_ids=prompt_ids, sampling_params=self._sampling
            )
        call = ModelCall(
            prompt_tokens=len(prompt_ids),
            completion_tokens=len(output.token_ids),
            duration_s=time.perf_counter() - begin_s,
        )
        return _action(self._loop.tokenizer, output), call


def _action(tokenizer: Any, output: Any) -> Completion:
    ids = list(output.token_ids)
    is_ended = bool(ids) and ids[-1] == tokenizer.eos_token_id
    text = tokenizer.decode(ids[:-1] if is_ended else ids)
    version = output.extra_fields.get(_VERSION)
    return Completion(text, ids, output.log_probs or None, weight_version=version)
