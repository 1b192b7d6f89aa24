"""verl: an agent loop of repair episodes. Needs the extra ``verl``.

    # the file in actor_rollout_ref.rollout.agent.agent_loop_config_path
    - name: coding_repair
      _target_: coding_gym.adapters.verl.RepairAgentLoop
      env: {tasks: bundled, max_turns: 30}

With ``harness: nano-agent``, or a TOML file, a command-line agent plays the episode in the sandbox.

verl creates an agent loop for each trajectory. The training uses exactly the sampled ids; the
messages between them have mask 0.
"""

import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from uuid import uuid4

from coding_gym.action import Completion
from coding_gym.adapters.samples import longest_segment
from coding_gym.adapters.session import outcome_metrics, task_options
from coding_gym.agents.harness import HarnessPlayer, get_harness
from coding_gym.agents.local_chat import LocalChat, play_by_ids
from coding_gym.agents.model_errors import ModelError, PromptTooLongError
from coding_gym.agents.player import Complete, LiveEpisode, Player
from coding_gym.calls import ModelCall
from coding_gym.episode import EpisodeConfig
from coding_gym.errors import InvalidArgumentError
from coding_gym.optional import missing_extra
from coding_gym.rollout.runner import Runner
from coding_gym.text.tokenizers import get_tokenizer
from coding_gym.trajectory import LASTING_ERROR_CLASSES, Trajectory

try:
    from omegaconf import OmegaConf
    from verl.experimental.agent_loop.agent_loop import AgentLoopBase, AgentLoopOutput, register
    from verl.utils.profiler import simple_timer
except ImportError as error:
    raise missing_extra("verl", "verl") from error

NAME = "coding_repair"
"""The name of the agent loop in the column ``agent_name``."""

_VERSION = "max_global_steps"
"""The field of a reply with the version of the newest weights that sampled the reply."""


@register(NAME)
class RepairAgentLoop(AgentLoopBase):
    """Plays one repair episode with verl's rollout servers.

    verl takes one sequence per episode: if a command-line agent rewrites its history, the
    sequence is the segment with the most sampled ids.

    Args:
        env: Arguments of `EpisodeConfig.from_config`, except ``tokenizer``.
        harness: A command-line agent: the name of a preset, or a TOML file.
        *args, **kwargs: The arguments of verl's agent loops.

    Raises:
        InvalidArgumentError, UnknownNameError: ``env`` or the harness cannot be used.
    """

    def __init__(
        self, *args: Any, env: Any = None, harness: str | None = None, **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        self._settings: Any = OmegaConf.to_container(OmegaConf.create(env or {}), resolve=True)
        if "tokenizer" in self._settings:
            raise InvalidArgumentError("omit tokenizer: episodes use the tokenizer of verl")
        self._settings["tokenizer"] = f"hf:{self.tokenizer.name_or_path}"
        self._harness = get_harness(harness) if harness else None

    async def run(self, sampling_params: dict[str, Any], **row: Any) -> AgentLoopOutput:
        """Plays an episode and returns its tokens, its mask and its reward.

        After an infrastructure failure the mask is 0 everywhere, the reward is 0.0, and
        ``extra_fields["mask_sample"]`` is True.

        Args:
            sampling_params: As for verl's servers.
            **row: The columns of the dataset, with ``task_id`` or ``task``, directly or in
                ``extra_info``.

        Raises:
            InvalidArgumentError, UnknownNameError, UnknownTaskError, InvalidTaskError: An argument
                cannot be used, or the row has no usable task.
            ModelError: The model or the agent failed.
        """
        options = task_options({**(row.get("extra_info") or {}), **row})
        is_named = "task_id" in options
        selection = {"task_ids": [options["task_id"]]} if is_named else {"tasks": [options["task"]]}
        config = EpisodeConfig.from_config(**{**self._settings, **selection})
        model = _ServedModel(self, sampling_params, rewrites_history=self._harness is not None)
        player = HarnessPlayer(self._harness, model) if self._harness else model
        with ThreadPoolExecutor(2) as threads:
            record = await Runner(config=config, player=player).play(config.tasks[0], 0, threads)
        if record.error_class in LASTING_ERROR_CLASSES:
            raise ModelError(record.error, record.error_class)
        return self._output(record, model.metrics, model.fields)

    def _output(
        self, record: Trajectory, metrics: Mapping[str, Any], reply_fields: Mapping[str, Any]
    ) -> AgentLoopOutput:
        has_failed = bool(record.error_class)
        fitted, trained_part = self._fitted(record)
        return AgentLoopOutput(
            **fitted,
            reward_score=0.0 if has_failed else record.total_reward,
            num_turns=2 * len(record.turns) + 1,
            metrics=metrics,
            extra_fields={
                **reply_fields,
                "task_id": record.task_id,
                "turn": len(record.turns),
                "tool_calls": record.usage["tool_calls"],
                "stop_reason": record.stop_reason,
                "error": record.error,
                "mask_sample": has_failed,
                "resolved": record.resolved,
                "trained_part": trained_part,
                "turn_scores": [],
                "tool_rewards": [],
                "reward_extra_info": outcome_metrics(record.grade, infra_failed=has_failed),
            },
        )

    def _fitted(self, record: Trajectory) -> tuple[dict[str, Any], float]:
        """Returns the longest segment as verl's fields, and the trained share of all sampled ids.

        verl pads prompts but does not truncate them, so the response starts with the end of a
        prompt that is too long.
        """
        config, segment = self.rollout_config, longest_segment(record, self.tokenizer.eos_token_id)
        ids, logprobs = [*segment["prompt_ids"], *segment["completion_ids"]], segment["logprobs"]
        if logprobs is None and config.get("calculate_log_probs"):
            logprobs = [0.0] * len(segment["env_mask"])
        num_prompt = min(len(segment["prompt_ids"]), config.prompt_length)
        num_moved, length = len(segment["prompt_ids"]) - num_prompt, config.response_length
        mask = [*[0] * num_moved, *segment["env_mask"]][:length]
        fields = {
            "prompt_ids": ids[:num_prompt],
            "response_ids": ids[num_prompt:][:length],
            "response_mask": mask,
            "response_logprobs": logprobs and [*[0.0] * num_moved, *logprobs][:length],
        }
        return fields, segment["trained_part"] * sum(mask) / max(sum(segment["env_mask"]), 1)


class _ServedModel(Player):
    """The trainer's model on verl's rollout servers, for one episode.

    Attributes:
        metrics: Durations for verl's log.
        fields: Extra fields of replies: the first value of each, but the last version of weights.
    """

    name = "verl"

    def __init__(
        self, loop: AgentLoopBase, sampling_params: dict[str, Any], *, rewrites_history: bool
    ) -> None:
        self.model = loop.tokenizer.name_or_path
        self.tokenizer = f"hf:{self.model}"
        self.metrics, self.fields = dict[str, Any](), dict[str, Any]()
        self._loop, self._sampling, self._rewrites_history = loop, sampling_params, rewrites_history
        self._request_id = uuid4().hex
        config = loop.rollout_config
        self._context = config.prompt_length + config.response_length

    async def play(self, live: LiveEpisode) -> None:
        await play_by_ids(live, self.tokenizer, self.reply)

    def chat(self, seed: int) -> Complete:
        return LocalChat(self.tokenizer, self.reply, seed).complete

    async def reply(
        self,
        prompt_ids: list[int],
        max_tokens: int | None,  # noqa: ARG002 - verl limits the length of replies
        attempt_seed: int,  # noqa: ARG002 - verl's servers have the seeds
        turn: int,  # noqa: ARG002
    ) -> Completion:
        if not self._rewrites_history:  # the first prompt is the shortest prompt
            full_length = len(prompt_ids) + self._loop.rollout_config.response_length
            self._context = min(self._context, full_length)
        if len(prompt_ids) >= self._context:
            raise PromptTooLongError(
                f"the prompt must have fewer than {self._context} tokens, got {len(prompt_ids)}"
            )
        start_s = time.perf_counter()
        with simple_timer("generate_sequences", self.metrics):
            output = await self._loop.server_manager.generate(
                request_id=self._request_id, prompt_ids=prompt_ids, sampling_params=self._sampling
            )
        version = output.extra_fields.get(_VERSION)
        self.fields = {**output.extra_fields, **self.fields}
        if version is not None:
            self.fields[_VERSION] = version
        ids = list(output.token_ids)
        tokenizer = get_tokenizer(self.tokenizer)
        is_cut = not ids or ids[-1] not in tokenizer.end_ids
        call = ModelCall(
            prompt_tokens=len(prompt_ids),
            completion_tokens=len(ids),
            duration_s=time.perf_counter() - start_s,
            prompt_ids=tuple(prompt_ids),
        )
        return Completion(
            tokenizer.decode(ids if is_cut else ids[:-1]),
            ids,
            output.log_probs or None,
            weight_version=version,
            is_cut=is_cut,
            model_call=call,
        )
