"""One repair attempt, from a clean checkout to a graded patch. It knows nothing of Gymnasium."""

import time
from collections.abc import Callable
from copy import deepcopy
from typing import TYPE_CHECKING, Any

from coding_gym.action import Stop
from coding_gym.episode import transcript
from coding_gym.episode.ending import Ending, finish
from coding_gym.episode.limits import Limits
from coding_gym.episode.occupancy import Occupancy, alone, shared
from coding_gym.episode.opening import open_clean, open_restored, open_twice, warn_of_prompt
from coding_gym.episode.outcome import Outcome
from coding_gym.episode.playing import Played, Player
from coding_gym.episode.recording import record_turn, with_token_ids
from coding_gym.episode.settings import settings_of
from coding_gym.episode.snapshot import EpisodeSnapshot
from coding_gym.episode.usage import Usage
from coding_gym.episode.warming import Warming
from coding_gym.errors import EpisodeError, MachineryError
from coding_gym.patch import Patch
from coding_gym.sandbox.options import SandboxOptions
from coding_gym.task import Task
from coding_gym.text.tokenizers import Tokenizer
from coding_gym.tools import Toolset
from coding_gym.tools.formats import with_instructions
from coding_gym.trajectory import Message, StopReason, Trajectory, Turn
from coding_gym.workspace import Template, diff

if TYPE_CHECKING:
    from coding_gym.episode.context import Context
    from coding_gym.grade import Grade


class Episode:
    """One attempt at one task.

    `start` opens the sandbox, `step` plays one action, and whichever action ends the episode also
    grades it. A failure of our own side ends the episode too: its stop reason says so, `error` has
    the message, and nothing is raised. Between two turns `snapshot` gives all that the attempt is,
    and `restore` starts another episode with it.

    Args:
        task: The bug.
        template: Gives the task's template; called by `start`, so that what it raises for our
            side's failures becomes part of the episode.
        toolset: The tools that the policy has.
        tokenizer: Counts tokens and encodes plain replies for the trajectory.
        tool_format: How tool calls are written; see `coding_gym.tools.formats`.
        limits: Upper bounds; ``bounds`` are those of them and of the task that are tighter.
        sandbox: Where commands run.
        command_timeout_s: Seconds that one tool call may take.
        source: What the task came from, for the record.
    """

    def __init__(
        self,
        task: Task,
        template: Callable[[Task], Template],
        *,
        toolset: Toolset,
        tokenizer: Tokenizer,
        tool_format: str = "auto",
        limits: Limits | None = None,
        sandbox: SandboxOptions | None = None,
        command_timeout_s: float = 120.0,
        source: str = "",
    ) -> None:
        self.task = task
        self.toolset = toolset
        self.tokenizer = tokenizer
        self.limits = limits or Limits()
        self.bounds = self.limits.with_turns(task.max_turns)
        self.usage = Usage()
        self.messages: list[Message] = []
        self.stop_reason: StopReason | None = None
        self.grade: Grade | None = None
        self.error = ""
        self.sandbox = sandbox or SandboxOptions()
        self._template = template
        self._timeout_s = command_timeout_s
        self._source, self._format = source, tool_format
        self._turns: list[Turn] = []
        self._context: Context | None = None
        self._warming = Warming()
        self._outcome: Outcome | None = None
        self._patch = Patch()
        self._closed = False
        self.occupancy = Occupancy()
        self._player = Player(
            toolset, tokenizer, tool_format=tool_format, limits=self.bounds, usage=self.usage
        )

    @property
    def ended(self) -> bool:
        """Whether the episode is over; then `grade` is final."""
        return self.stop_reason is not None

    @property
    def template(self) -> Template | None:
        """What the running episode's sandbox was opened from; None where there is no sandbox."""
        return None if self._context is None else self._context.template

    @property
    def turns(self) -> tuple[Turn, ...]:
        """The turns so far, as they were played; `trajectory` encodes the plain replies too."""
        return tuple(self._turns)

    def start(self) -> Outcome:
        """Opens the sandbox and returns the problem.

        A sandbox that fails to open is tried once more; after a second failure, or when the
        template cannot be built, the episode is stillborn: it looks ordinary, and its first `step`
        ends it with ``SANDBOX_ERROR``.

        Raises:
            SandboxUnavailableError: This machine cannot run the sandbox at all.
            InvalidTaskError: The task's tree cannot be made as the task says.
        """
        self._context, self.error = open_twice(
            self.task.task_id,
            lambda: open_clean(lambda: self._template(self.task), self.sandbox, self._timeout_s),
        )
        prompt = self.toolset.prompt(keeps_shell=self.sandbox.shell == "persistent")
        prompt = with_instructions(prompt, self._format, self.toolset.schemas)
        self.messages = transcript.opening(prompt, self.task.problem_statement)
        text = transcript.seen_text(self.messages)
        self._player.begin(self.messages)
        warn_of_prompt(self.task.task_id, self.usage, self.bounds)
        self._outcome = Outcome(messages=tuple(self.messages), text=text)
        return self._outcome

    @shared
    def snapshot(self) -> EpisodeSnapshot:
        """Returns all that the running episode is: files, chat, turns, and what it has used.

        Processes are not part of it, nor is the state of a persistent shell.

        Raises:
            EpisodeError: The episode was not started, has ended, was closed, or has no sandbox; or
                an action is under way in another thread.
            SandboxError: The sandbox died.
        """
        self._check_open("snapshot")
        if self._context is None or self._outcome is None:
            raise EpisodeError(f"the episode has no sandbox to take a snapshot of: {self.error}")
        return EpisodeSnapshot(
            task=self.task,
            template=self._context.template,
            files=self._context.sandbox.snapshot(),
            messages=tuple(self.messages),
            turns=self.turns,
            usage=self.usage.copy(),
            outcome=self._outcome,
            tool_state=deepcopy(self._context.state),
        )

    def restore(self, snapshot: EpisodeSnapshot) -> Outcome:
        """Opens a sandbox with a snapshot's files instead of `start`, and goes on from there.

        Toolset, tokenizer, limits and sandbox are to be those of the episode it was taken of.
        Where our own side fails the episode is stillborn, as for `start`.

        Args:
            snapshot: Of an episode of this task.

        Returns:
            What the policy got last.

        Raises:
            EpisodeError: The episode was started, or is of another task.
            SandboxUnavailableError: This machine cannot run the sandbox at all.
        """
        if self.messages or snapshot.task != self.task:
            raise EpisodeError("a snapshot restores into a new episode of its task")
        self._context, self.error = open_twice(
            self.task.task_id, lambda: open_restored(snapshot, self._timeout_s)
        )
        self.messages, self._turns = list(snapshot.messages), list(snapshot.turns)
        self.usage.become(snapshot.usage)
        self._player.begin()
        self._outcome = snapshot.outcome
        return snapshot.outcome

    @alone
    def step(self, action: str) -> Outcome:
        """Plays one action.

        Where the prompt alone is more than the token budget, the first action ends the episode
        with ``MAX_TOKENS``, and its calls are neither read nor run.

        Args:
            action: The policy's reply: any text, a `Completion`, or a `Stop`.

        Raises:
            EpisodeError: The episode was not started, has ended, or was closed; or another action
                or a snapshot is under way in another thread.
        """
        self._check_open("step")
        began = time.perf_counter()
        self.usage.turns += 1
        played = self._play(action)
        self.error = played.error
        reason = played.stop_reason or self.usage.spent_turns(self.bounds)
        reward = self._finish(reason) if reason else 0.0
        self.messages += played.messages
        outcome = Outcome(
            messages=tuple(played.messages),
            text=transcript.seen_text(played.messages),
            reward=reward,
            reward_parts={"resolved": reward} if self.ended else {},
            stop_reason=self.stop_reason,
        )
        duration_s = time.perf_counter() - began
        context = self._context  # another thread may close the episode meanwhile
        if played.calls and context is not None:  # the grade warms up while the policy thinks
            self._warming.begin(self.task, context.template, self.sandbox.name)
        self._turns.append(record_turn(action, played.calls, played.results, outcome, duration_s))
        self._outcome = outcome
        return outcome

    def lose(self, failure: MachineryError) -> None:
        """Gives the sandbox up because our side failed: the next action ends the episode, masked.

        For who drives the episode, and fails where the episode itself did not.
        """
        context, self._context = self._context, None
        if context is not None and not self.ended:
            self.error = str(failure)
            context.sandbox.close()
            self._warming.end()

    def _play(self, action: str) -> Played:
        if self._context is None:
            return Played(stop_reason=StopReason.SANDBOX_ERROR, error=self.error)
        if isinstance(action, Stop):
            return Played(stop_reason=StopReason.STOPPED)
        spent = self.usage.spent(self.bounds)
        if spent:  # by the prompt, or by the time since the last turn
            return Played(stop_reason=spent)
        return self._player.play(action, self._context)

    def _finish(self, reason: StopReason) -> float:
        """Ends the episode and returns its reward."""
        self.usage.stop_clock()
        context, self._context = self._context, None
        if context is None or reason.is_machinery:
            ending = Ending(stop_reason=StopReason.SANDBOX_ERROR, error=self.error)
            if context is not None:
                context.sandbox.close()
        else:
            ending = finish(self.task, context, reason, self.sandbox.name, self._warming.start)
        self._warming.end()
        self.stop_reason, self.grade = ending.stop_reason, ending.grade
        self.error, self._patch = ending.error, ending.patch
        return float(ending.grade is not None and ending.grade.resolved)

    def patch(self) -> Patch:
        """Returns the change so far, or the graded one once the episode has ended.

        Raises:
            PatchError: The tree cannot be put into a patch (too large, for instance).
            SandboxError: The sandbox died.
        """
        if self._context is None:
            return self._patch
        return diff(self._context.sandbox, self._context.template)

    def trajectory(self) -> Trajectory:
        """Returns what happened so far; plain replies are encoded here and marked inexact."""
        return Trajectory(
            task_id=self.task.task_id,
            messages=tuple(self.messages),
            turns=with_token_ids(self._turns, self.tokenizer),
            stop_reason=self.stop_reason,
            patch=self._patch.text,
            grade=self.grade,
            toolset=self.toolset.name,
            tokenizer=self.tokenizer.name,
            tools=tuple(deepcopy(dict(schema)) for schema in self.toolset.schemas),
            usage=self.usage.counted(self.bounds),
            cost=self.usage.known_cost(self.bounds),
            error=self.error,
            settings=settings_of(
                self.task,
                self._source,
                tool_format=self._format,
                limits=self.limits,
                sandbox=self.sandbox,
                command_timeout_s=self._timeout_s,
            ),
        )

    def render(self) -> str:
        """Returns the transcript as text that a person can follow."""
        footer = ""
        if self.stop_reason is not None:
            verdict = self.grade.reason if self.grade else self.error
            footer = f"── {self.stop_reason} after {self.usage.turns} turns: {verdict} ──"
        return transcript.render(self.messages, footer)

    def info(self) -> dict[str, Any]:
        """Returns what is known of the episode now, in JSON's types; no gold.

        The only timing is what is left of ``max_seconds``.
        """
        data: dict[str, Any] = {
            "task_id": self.task.task_id,
            "turn": self.usage.turns,
            "tool_calls": self.usage.tool_calls,
            "budget": self.usage.left(self.bounds),
            "stop_reason": None if self.stop_reason is None else str(self.stop_reason),
            "error": self.error if self.ended else "",
            "mask_sample": self.stop_reason is not None and self.stop_reason.is_machinery,
        }
        if self.ended:
            data["resolved"] = self.grade is not None and self.grade.resolved
            verdict = self.grade.to_json() if self.grade else {}
            data["grade"] = {k: v for k, v in verdict.items() if k != "duration_s"}
        return data

    def close(self) -> None:
        """Frees the sandbox without grading; idempotent."""
        self._closed = True
        context, self._context = self._context, None
        if context is not None:
            context.sandbox.close()
        self._warming.end()

    def _check_open(self, what: str) -> None:
        if not self.messages:
            raise EpisodeError(f"{what} was called before start")
        if self.ended:
            raise EpisodeError(f"the episode has ended ({self.stop_reason}); start another one")
        if self._closed:
            raise EpisodeError("the episode was closed; start another one")
