"""``CodingRepair-v0``: spaces, seeding and Gymnasium's tuple around an `Episode`."""

import logging
from collections.abc import Mapping, Sequence
from copy import copy, deepcopy
from functools import cache
from typing import Any, Self

import gymnasium as gym

from coding_gym.arguments import at_least_one, positive_seconds
from coding_gym.envs.forking import fork, restore
from coding_gym.envs.options import read_options
from coding_gym.envs.randomness import Randomness
from coding_gym.envs.snapshot import EnvSnapshot
from coding_gym.envs.spaces import ActionText, token_arrays
from coding_gym.episode import Episode, Limits, Outcome
from coding_gym.errors import EpisodeError, InvalidArgumentError
from coding_gym.patch import Patch
from coding_gym.sandbox.options import SandboxOptions
from coding_gym.task import Task
from coding_gym.tasks import get_sampler, load_tasks
from coding_gym.text.observation import encode_observation
from coding_gym.text.tokenizers import get_tokenizer
from coding_gym.tools import get_toolset
from coding_gym.tools.formats import check_format
from coding_gym.workspace import TemplateStore

Observation = dict[str, Any]

_log = logging.getLogger(__name__)
_template_store = cache(TemplateStore)  # one per backend and process, shared by all its envs


class CodingRepairEnv(gym.Env[Observation, str]):
    """One software bug at a time, repaired by tool calls in a sealed sandbox.

    *Observation*: ``Dict(input_ids=Box(int32, (N,)), attention_mask=Box(int8, (N,)))`` with N =
    ``max_obs_tokens``: the text that the last action made new, encoded, its tail kept, padded on
    the right. The text itself is ``info["text"]``.

    *Action*: any string. The plainest is ``{"name": "shell", "arguments": {"cmd": "ls"}}``; see
    ``tool_format``. A `coding_gym.Completion` carries the sampled token ids too, and a
    `coding_gym.Stop` ends the episode from outside.

    *Reward*: 1.0 on the step that ends an episode whose patch passes every hidden test, else 0.0.

    *terminated* when the policy submitted (or ended by its toolset's rule), *truncated* at a limit,
    at a `Stop`, or when our own side failed. Either way the patch is graded in that very step.

    *info* holds, at every step, ``task_id, text, messages`` (new chat messages, OpenAI's form),
    ``turn, tool_calls, budget`` (what is left, None for unbounded), ``stop_reason, reward_parts,
    error, mask_sample``; at the end also ``resolved`` and ``grade``, which names hidden tests and
    must not be shown to a policy.

    Args:
        tasks: ``"bundled"``, any other source that `load_tasks` takes, or a list of rows.
        task_ids: Only these tasks, by id.
        sampler: ``"uniform"``, ``"sequential"``, ``"shuffled"``, ``"difficulty"`` (easy ones first)
            or ``"adaptive"`` (most often those that are sometimes solved): how `reset` picks a
            task; ``{"name": "adaptive", "window": 32}`` gives a sampler arguments.
        toolset: ``"nano"``: the tools and their replies.
        tool_format: How calls are written: ``"auto"``, or one of `coding_gym.tools.formats`, such
            as ``"hermes"`` or ``"qwen3_coder"``, which the system prompt then explains.
        tokenizer: A tokenizer's name; see `coding_gym.text.tokenizers.get_tokenizer`.
        max_obs_tokens: N above, in tokens.
        max_turns: Actions per episode.
        sandbox: ``"auto"``, a backend's name, or a mapping with any of ``name``, ``shell``
            (``"fresh"``, ``"waiting"``, ``"persistent"``), ``image``, and ``limits``, which maps
            fields of `coding_gym.sandbox.SandboxLimits` to numbers.
        command_timeout_s: Seconds that one command may take.
        render_mode: None, or ``"ansi"``: `render` returns the transcript as text.

    Raises:
        InvalidArgumentError, UnknownNameError, UnknownTaskError, InvalidTaskError: An argument
            cannot be used; the message names it, its value and the way out.
    """

    metadata: dict[str, Any] = {"render_modes": ["ansi"], "render_fps": 1}  # noqa: RUF012 - Gymnasium's own form

    def __init__(
        self,
        tasks: str | Sequence[Mapping[str, Any]] = "bundled",
        task_ids: Sequence[str] | None = None,
        sampler: str | Mapping[str, Any] = "uniform",
        toolset: str = "nano",
        tool_format: str = "auto",
        tokenizer: str = "coding_gym_16k",
        max_obs_tokens: int = 4096,
        max_turns: int = 50,
        sandbox: str | Mapping[str, Any] = "auto",
        command_timeout_s: float = 120.0,
        render_mode: str | None = None,
    ) -> None:
        if render_mode not in (None, "ansi"):
            raise InvalidArgumentError(f"render_mode must be None or 'ansi', got {render_mode!r}")
        self.render_mode = render_mode
        self.toolset = get_toolset(toolset)
        check_format(tool_format, self.toolset.schemas)
        self.tokenizer = get_tokenizer(tokenizer)
        self.limits = Limits(max_turns=max_turns)
        self._tasks = tuple(load_tasks(tasks, task_ids=task_ids))
        self._source = tasks if isinstance(tasks, str) else ""
        self._sampler = get_sampler(sampler, self._tasks)
        self.tool_format = tool_format
        self._max_obs_tokens = at_least_one("max_obs_tokens", max_obs_tokens)
        self._sandbox = SandboxOptions.parse(sandbox)
        self._command_timeout_s = positive_seconds("command_timeout_s", command_timeout_s)
        self._episode: Episode | None = None
        self._num_dropped = 0  # episodes in a row that were played, and dropped by a reset
        self.observation_space = token_arrays(self.tokenizer.vocab_size, self._max_obs_tokens)
        self.action_space = ActionText(toolset, tool_format)

    @property
    def episode(self) -> Episode:
        """The running or last episode; EpisodeError before the first `reset`."""
        if self._episode is None:
            raise EpisodeError("there is no episode yet; call reset first")
        return self._episode

    @property
    def task(self) -> Task:
        """The task of the running or last episode, gold patch included: not for policies."""
        return self.episode.task

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Starts an episode; a running one is dropped ungraded.

        Two such in a row are logged as a warning: a ``TimeLimit`` outside, which the env cannot
        see, drops every episode.

        Args:
            seed: Seeds the choice of tasks.
            options: ``{"task_id": id}`` picks one of this env's tasks, ``{"task": row}`` gives a
                task as a row, and ``{"snapshot": moment}`` begins where an `EnvSnapshot` was
                taken; without any the sampler picks a task.

        Returns:
            The observation of the problem statement (of a snapshot: the last one), and info.
        """
        super().reset(seed=seed)
        if seed is not None:  # a seed starts the whole sequence of tasks again
            self._sampler = self._sampler.fresh()
        asked = read_options(options, self._tasks)
        moment = asked if isinstance(asked, EnvSnapshot) else None
        if moment is not None:
            moment.check_settings(self._settings())
            task = moment.episode.task
        else:
            task = asked if isinstance(asked, Task) else self._sampler.next(self.np_random)
        if self._episode is not None:
            self._drop(self._episode, is_meant=moment is not None)
        episode = self._episode = Episode(
            task,
            _template_store(self._sandbox.name).get,
            toolset=self.toolset,
            tokenizer=self.tokenizer,
            tool_format=self.tool_format,
            limits=self.limits,
            sandbox=self._sandbox,
            command_timeout_s=self._command_timeout_s,
            source=self._source,
        )
        outcome = episode.start() if moment is None else episode.restore(moment.episode)
        return self._observe(outcome), self._info(outcome)

    def _drop(self, episode: Episode, *, is_meant: bool) -> None:
        is_running = episode.template is not None
        if is_running and episode.usage.turns and not is_meant:
            self._num_dropped += 1
            if self._num_dropped == 2:  # once is a caller's choice
                _log.warning(
                    "reset dropped two running episodes in a row, ungraded, the last one after %d "
                    "turns; if a TimeLimit ends them (max_episode_steps of gym.make), leave it out "
                    "and give max_turns instead",
                    episode.usage.turns,
                )
        elif episode.ended:
            self._num_dropped = 0
        episode.close()

    def step(self, action: str) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Plays one action; see the class for what comes back.

        Raises:
            EpisodeError: There is no running episode.
            InvalidArgumentError: The action is not a string.
        """
        if not isinstance(action, str):
            raise InvalidArgumentError(
                f"an action is a string, got {type(action).__name__}; use json.dumps on a call"
            )
        outcome = self.episode.step(action)
        reason = outcome.stop_reason
        terminated = reason is not None and reason.terminated
        truncated = reason is not None and not reason.terminated
        if reason is not None and self.episode.grade is not None:
            task_id = self.task.task_id
            if any(task.task_id == task_id for task in self._tasks):  # not one of reset's options
                self._sampler.record(task_id, resolved=self.episode.grade.resolved)
        return self._observe(outcome), outcome.reward, terminated, truncated, self._info(outcome)

    @property
    def follows_results(self) -> bool:
        """Whether the sampler chooses tasks by how earlier episodes ended."""
        return self._sampler.follows_results

    def share_results(self, other: "CodingRepairEnv") -> None:
        """Lets the samplers of this env and another of the same tasks learn from one record."""
        self._sampler.share(other._sampler)

    def _observe(self, outcome: Outcome) -> Observation:
        return encode_observation(outcome.text, self.tokenizer, self._max_obs_tokens)

    def _info(self, outcome: Outcome) -> dict[str, Any]:
        return {
            **self.episode.info(),
            "text": outcome.text,
            # Wrappers edit infos; the transcript stays as it was.
            "messages": deepcopy(list(outcome.messages)),
            "reward_parts": dict(outcome.reward_parts),
        }

    def patch(self) -> Patch:
        """Returns the change so far, or the graded one once the episode has ended."""
        return self.episode.patch()

    def snapshot(self) -> EnvSnapshot:
        """Returns this moment, without the wrappers around this env: `coding_gym.snapshot`.

        Raises:
            EpisodeError: No episode is running.
            SandboxError: The sandbox died.
        """
        return EnvSnapshot(
            episode=self.episode.snapshot(),
            settings=self._settings() | {"limits": self.episode.limits},
            tasks=self._tasks,
            sampler=self._sampler.copy(),
            randomness=Randomness.of(self),
        )

    def restore(self, moment: EnvSnapshot) -> tuple[Observation, dict[str, Any]]:
        """Brings this env to a snapshot, without its wrappers: `coding_gym.restore`."""
        return restore(self, moment)

    def fork(self) -> gym.Env[Observation, str]:
        """Returns a new env that goes on from here, without the wrappers: `coding_gym.fork`."""
        return fork(self)

    def twin(self) -> Self:
        """Returns an env with the same arguments and no episode; they share what never changes."""
        twin = copy(self)
        twin._episode, twin._num_dropped = None, 0
        twin._np_random = twin._np_random_seed = None
        twin._sampler = self._sampler.copy().fresh()
        twin.observation_space = token_arrays(self.tokenizer.vocab_size, self._max_obs_tokens)
        twin.action_space = ActionText(self.toolset.name, self.tool_format)
        return twin

    def check_restorable(self, moment: EnvSnapshot) -> None:
        """Raises InvalidArgumentError where `restore` could not keep its word."""
        moment.check_settings(self._settings())
        moment.check_sequence(self._tasks, self._sampler)

    def resume(self, moment: EnvSnapshot) -> None:
        """Takes up the sequence of tasks where a snapshot was taken."""
        self._sampler = moment.sampler.copy()

    def _settings(self) -> dict[str, Any]:
        return {
            "toolset": self.toolset.name,
            "tool_format": self.tool_format,
            "tokenizer": self.tokenizer.name,
            "max_obs_tokens": self._max_obs_tokens,
            "limits": self.limits,
            "sandbox": self._sandbox,
            "command_timeout_s": self._command_timeout_s,
        }

    def render(self) -> str | None:
        """Returns the transcript of the episode as text, or None without a render mode."""
        if self.render_mode is None:
            gym.logger.warn("render needs render_mode='ansi': gym.make(..., render_mode='ansi')")
            return None
        return self.episode.render()

    def close(self) -> None:
        """Frees the sandbox; idempotent."""
        if self._episode is not None:
            self._episode.close()
