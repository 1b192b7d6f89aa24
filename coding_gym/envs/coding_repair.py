"""``CodingRepair-v0``: the Gymnasium environment around an `Episode`."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from copy import deepcopy
from dataclasses import replace
from typing import Any

import gymnasium as gym

from coding_gym.arguments import at_least_one, check_arguments
from coding_gym.envs.snapshot import EnvSnapshot, check_equal, settings_of
from coding_gym.envs.spaces import ActionText, pad, token_arrays
from coding_gym.episode import Episode, EpisodeConfig, transcript
from coding_gym.episode.config import argument_names
from coding_gym.episode.usage import Usage
from coding_gym.errors import EpisodeError, InvalidArgumentError, UnknownTaskError
from coding_gym.grade import Grade, GradeReason
from coding_gym.task import Task
from coding_gym.tasks import find_task, get_sampler
from coding_gym.tasks.impossible import with_impossible
from coding_gym.text.tokenizers import get_tokenizer
from coding_gym.tools import get_toolset
from coding_gym.trajectory import StopReason, Turn

Observation = dict[str, Any]


class CodingRepairEnv(gym.Env[Observation, str]):
    """One software bug at a time, repaired by tool calls in a sealed sandbox.

    *Observation*: ``Dict(input_ids=Box(int32, (N,)), attention_mask=Box(int8, (N,)))`` with N =
    ``max_obs_tokens``: the new text after the last action, encoded, padded on the right. A longer
    text is truncated to its last N tokens; the issue, at `reset`, to its first N tokens.
    ``info["observation_cut"]`` is then True. ``info["text"]`` is the whole text.

    *Action*: any string, for example ``{"name": "shell", "arguments": {"cmd": "ls"}}``; see
    ``tool_format``. A `coding_gym.Completion` also has the sampled token ids, and a
    `coding_gym.Stop` is a caller's decision to end the episode.

    *Reward*: 1.0 on the step that ends an episode whose patch passes every hidden test, else 0.0.

    *terminated* after a submission, or (toolset ``nano``) after a reply without a call if the tree
    has changed; *truncated* by a limit, a `Stop` or an infrastructure failure. The last step
    grades the patch, except after an infrastructure failure.

    *info* has at every step ``task_id, text, observation_cut, messages`` (new chat messages,
    OpenAI's form), ``turn, tool_calls, budget`` (the remaining amount of each limit, None
    if unlimited), ``stop_reason, reward_parts, error, mask_sample``; at the end also ``resolved``,
    ``patch`` (text) and ``grade`` (a `Grade`, None after an infrastructure failure), which names
    hidden tests: never display it to a policy.

    Args:
        sampler: The choice of tasks: ``"uniform"``, ``"sequential"``, ``"shuffled"``,
            ``"difficulty"`` (easy tasks first) or ``"adaptive"`` (prefers tasks that are sometimes
            resolved). ``{"name": "adaptive", "window": 32}`` sets arguments of the sampler. The key
            ``"impossible": 0.05`` makes this fraction of the tasks impossible, to count hacks: see
            `coding_gym.tasks.impossible.impossible`.
        max_obs_tokens: N, the length of observations in tokens.
        render_mode: None, or ``"ansi"``: `render` returns the transcript as text.
        **episode: Arguments that `EpisodeConfig.from_config` documents: ``tasks``, ``task_ids``,
            ``split``, ``toolset``, ``tool_format``, ``tokenizer``, ``max_turns``, ``limits``,
            ``sandbox``, ``command_timeout_s``, ``grading`` and ``challenge``.

    Attributes:
        config: The settings of the episodes, and the tasks.
        sampler: Chooses the tasks.
        toolset: The tools of the policy.
        tool_format: The format of calls.
        tokenizer: Encodes observations.
        max_obs_tokens: Length of the observations.

    Raises:
        InvalidArgumentError, UnknownNameError, UnknownTaskError, InvalidTaskError: An argument
            cannot be used.
    """

    metadata: dict[str, Any] = {"render_modes": ["ansi"], "render_fps": 1}  # noqa: RUF012 - as in Gymnasium

    def __init__(
        self,
        *,
        sampler: str | Mapping[str, Any] = "uniform",
        max_obs_tokens: int = 4096,
        render_mode: str | None = None,
        **episode: Any,
    ) -> None:
        check_arguments(
            "CodingRepair-v0",
            episode,
            ("sampler", "max_obs_tokens", "render_mode", *argument_names()),
        )
        if render_mode not in (None, "ansi"):
            raise InvalidArgumentError(f"render_mode must be None or 'ansi', got {render_mode!r}")
        self.render_mode = render_mode
        self.max_obs_tokens = at_least_one("max_obs_tokens", max_obs_tokens)
        self.config = EpisodeConfig.from_config(**episode)
        if isinstance(sampler, Mapping) and "impossible" in sampler:
            sampler = dict(sampler)
            all_tasks = with_impossible(self.config.tasks, sampler.pop("impossible"))
            self.config = replace(self.config, tasks=all_tasks)
        self.sampler = get_sampler(sampler, self.config.tasks)
        self.toolset, self.tool_format = get_toolset(self.config.toolset), self.config.tool_format
        self.tokenizer = get_tokenizer(self.config.tokenizer)
        self._episode: Episode | None = None
        self.observation_space = token_arrays(self.tokenizer.vocab_size, self.max_obs_tokens)
        self.action_space = ActionText(self.toolset.name)

    @property
    def episode(self) -> Episode:
        """The running or last episode; raises EpisodeError before the first `reset`."""
        if self._episode is None:
            raise EpisodeError("there is no episode yet; call reset first")
        return self._episode

    @property
    def is_running(self) -> bool:
        """Whether an episode is running, so that `step` can play an action."""
        return self._episode is not None and self._episode.is_running

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Starts an episode; a running episode is discarded without a grade.

        Gymnasium's `TimeLimit` does not grade the episodes that it truncates, so use ``max_turns``
        instead of ``max_episode_steps``.

        Args:
            seed: Seeds the choice of tasks.
            options: ``{"task_id": id}`` selects one of this env's tasks, ``{"task": row}`` is a
                task as a row, and ``{"snapshot": snapshot}`` starts from an `EnvSnapshot`; without
                options the sampler selects a task.

        Returns:
            The observation of the problem statement, or the last observation of the snapshot; info.

        Raises:
            UnknownTaskError, InvalidTaskError, InvalidArgumentError: ``options`` cannot be used.
            SandboxUnavailableError: This machine cannot run the sandbox at all.
        """
        start = self.choose(seed=seed, options=options)
        self.close()
        task = start if isinstance(start, Task) else start.episode.task
        with closes_on_error(self):
            episode = self._episode = Episode(task, self.config)
            if isinstance(start, EnvSnapshot):
                episode.restore(start.episode)
            else:
                episode.start()
            return self._observe(episode, episode.turns[-1] if episode.turns else None)

    def choose(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> Task | EnvSnapshot:
        """Returns the task or snapshot that `reset` would start with these arguments.

        Sets the seed and, without options, advances the sampler; after an error nothing is changed.
        A running episode continues.
        """
        start = _read_options(options, self.config)
        if isinstance(start, EnvSnapshot):
            check_equal(settings_of(self.config, start.episode.task), start.settings)
        super().reset(seed=seed)
        if seed is not None:  # a seed restarts the sequence of tasks
            self.sampler.restart()
        return start or self.sampler.next(self.np_random)

    def step(self, action: str) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Plays one action; the class documents the returned values.

        Raises:
            EpisodeError: There is no running episode.
            InvalidArgumentError: The action is not a string.
        """
        if not isinstance(action, str):
            raise InvalidArgumentError(
                f"action must be a string, got {type(action).__name__}; use json.dumps on a call"
            )
        episode = self.episode
        turn = episode.step(action)
        reason = episode.stop_reason
        self.report_grade(episode.task.task_id, episode.grade)
        terminated = reason is not None and reason.terminated
        truncated = reason is not None and not reason.terminated
        observation, info = self._observe(episode, turn)
        return observation, turn.reward, terminated, truncated, info

    def report_grade(self, task_id: str, grade: Grade | None) -> None:
        """Reports the grade of an episode to the sampler, if the patch was graded."""
        if grade is not None and grade.reason is not GradeReason.NOT_GRADED:
            with suppress(UnknownTaskError):  # a task from options is not the sampler's
                self.sampler.record(task_id, resolved=grade.resolved)

    def _observe(self, episode: Episode, turn: Turn | None) -> tuple[Observation, dict[str, Any]]:
        """Returns observation and info after a turn; for None, at the start of the episode."""
        if turn is None:
            messages, text = episode.opening, transcript.visible_text(episode.opening)
        else:
            messages, text = turn.messages, turn.observation
        ids, length = self.tokenizer.encode(text), self.max_obs_tokens
        info = {
            **episode.info(),
            "text": text,
            "observation_cut": len(ids) > length,
            "messages": deepcopy(list(messages)),  # a wrapper can change an info
            "reward_parts": {} if turn is None else dict(turn.reward_parts),
        }
        ids = ids[:length] if turn is None else ids[-length:]  # programs print results last
        return pad(ids, self.tokenizer.pad_id, length), info

    def lost_info(self, last_info: Mapping[str, Any], failure: Exception) -> dict[str, Any]:
        """Returns the final info of an episode that a failure outside `step` ended.

        Args:
            last_info: The last info of the episode; empty if its start failed.
            failure: The infrastructure failure.
        """
        start = {"task_id": "", "tool_calls": 0, "budget": Usage().left(self.config.limits)}
        return {
            **start,
            **last_info,
            "text": "",
            "observation_cut": False,
            "messages": [],
            "turn": last_info["turn"] + 1 if last_info else 0,
            "stop_reason": str(StopReason.SANDBOX_ERROR),
            "error": str(failure),
            "mask_sample": True,
            "reward_parts": {"resolved": 0.0},
            "resolved": False,
            "grade": None,
            "patch": "",
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


@contextmanager
def closes_on_error(env: gym.Env[Any, Any]) -> Iterator[None]:
    """Closes the episode of a ``reset`` that fails, so that ``step`` cannot continue it."""
    try:
        yield
    except BaseException:
        env.close()
        raise


def _read_options(
    options: Mapping[str, Any] | None, config: EpisodeConfig
) -> Task | EnvSnapshot | None:
    """Returns the task or snapshot of the options; None leaves the choice to the sampler."""
    if not options:
        return None
    match options:
        case {"snapshot": EnvSnapshot() as snapshot} if len(options) == 1:
            return snapshot
        case {"task": Task() | Mapping() as row} if len(options) == 1:
            return config.task_of(row)
        case {"task_id": str() as task_id} if len(options) == 1:
            return find_task(config.tasks, task_id)
    raise InvalidArgumentError(
        "reset takes one option: 'task_id' (a text), 'task' (the fields of a task) or 'snapshot' "
        f"(from coding_gym.snapshot), got {options!r:.200}"
    )
