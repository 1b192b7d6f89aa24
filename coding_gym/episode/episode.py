"""One repair attempt, from a clean checkout to a graded patch. It knows nothing of Gymnasium."""

import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from coding_gym.action import Completion, Stop
from coding_gym.calls import ToolCall, ToolResult
from coding_gym.episode import transcript
from coding_gym.episode.counting import ChatCount, ContentCount
from coding_gym.episode.lifecycle import Context, open_clean, open_restored
from coding_gym.episode.usage import Usage, collapse_warning
from coding_gym.errors import (
    EpisodeError,
    GradingError,
    MachineryError,
    PatchError,
    SandboxUnavailableError,
    TemplateError,
)
from coding_gym.grade import Grade, GradeReason
from coding_gym.grading import grade as grade_patch
from coding_gym.grading.plan import plan_key
from coding_gym.patch import Patch
from coding_gym.process_cache import ProcessCache
from coding_gym.sandbox import Snapshot
from coding_gym.task import Task
from coding_gym.text.chat import get_chat
from coding_gym.text.truncate import well_formed
from coding_gym.tools.formats import ParsedAction, parse_action, parsed_calls, with_instructions
from coding_gym.trajectory import Message, StopReason, Trajectory, Turn
from coding_gym.workspace import Template, diff

if TYPE_CHECKING:
    from coding_gym.episode.factory import EpisodeFactory

_LEAST_S = 0.001  # time may run out while a reply is read; no command takes 0 seconds

_log = logging.getLogger(__name__)
_grades = ProcessCache[Grade](1 << 14, "grades")


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The result of one action, or of the start of an episode.

    Attributes:
        messages: The new chat messages, the policy's own included.
        text: The text of the new messages that the policy has not written.
        reward: 1.0 when this action ended the episode and the patch is resolved, else 0.0.
        reward_parts: The parts of the reward, by name.
        stop_reason: Why the episode ended with this action, or None.
    """

    messages: tuple[Message, ...]
    text: str
    reward: float = 0.0
    reward_parts: Mapping[str, float] = field(default_factory=dict)
    stop_reason: StopReason | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EpisodeSnapshot:
    """The state of a running episode between two turns; `Episode.restore` continues from it.

    It holds no sandbox and restores any number of times. Nothing of it may be changed.

    Attributes:
        task: The bug.
        template: The template of the sandbox.
        files: The files that the sandbox had changed.
        messages: The chat so far.
        turns: The turns so far.
        usage: The part of the limits that they have used.
        outcome: The last outcome.
        tool_state: The state of the toolset.
    """

    task: Task
    template: Template = field(repr=False)
    files: Snapshot = field(repr=False)
    messages: tuple[Message, ...] = field(repr=False)
    turns: tuple[Turn, ...] = field(repr=False)
    usage: Usage
    outcome: Outcome = field(repr=False)
    tool_state: Mapping[str, Any] = field(default_factory=dict, repr=False)


@dataclass(slots=True)
class _Played:
    """The results of one action so far."""

    messages: list[Message] = field(default_factory=list)  # new ones, the policy's own first
    calls: tuple[ToolCall, ...] = ()  # read from the action
    results: list[ToolResult] = field(default_factory=list)  # fewer where the episode ended first


class Episode:
    """One attempt at one task.

    `start` opens the sandbox, `step` plays one action, and whichever action ends the episode also
    grades it. An infrastructure failure ends the episode too: its stop reason says so, `error` has
    the message, and nothing is raised. Between two turns `snapshot` gives all that the attempt is,
    and `restore` starts another episode with it.

    A harness with a loop of its own works in `access` instead of calling `step`, and sends a `Stop`
    when it has finished, which grades what it left.

    Args:
        task: The bug.
        factory: The settings. An infrastructure failure in its `EpisodeFactory.template`, which
            `start` calls, becomes part of the episode.

    Attributes:
        bounds: The tighter ones of the limits and the task's.
        usage: The part of them that is used.
        messages: The chat so far.
        stop_reason: Why the episode ended; None before.
        grade: The verdict; None before the end, and after an infrastructure failure.
        error: The last infrastructure failure, or "".

    Raises:
        InvalidArgumentError: Tokens are counted as a chat, and the tokenizer has no template.
    """

    def __init__(self, task: Task, factory: "EpisodeFactory") -> None:
        self.task = task
        self.toolset, self.tokenizer = factory.toolset, factory.tokenizer
        self.tool_format = factory.tool_format
        self.sandbox = factory.sandbox
        self.bounds = factory.limits.with_turns(task.max_turns)
        self.usage = Usage()
        self.messages: list[Message] = []
        self.stop_reason: StopReason | None = None
        self.grade: Grade | None = None
        self.error = ""
        self._factory = factory
        self._turns: list[Turn] = []
        self._context: Context | None = None
        self._outcome: Outcome | None = None
        self._patch = Patch()
        self._closed = False
        self._lock = threading.Lock()  # guards the two below
        self._num_under_way, self._is_stepping = 0, False
        self._count: ChatCount | ContentCount | None = None
        if self.bounds.counts_tokens and self.bounds.count == "chat":
            chat = get_chat(self.tokenizer, self.toolset.schemas, factory.tool_format)
            self._count = ChatCount(chat)
        elif self.bounds.counts_tokens:
            self._count = ContentCount(self.tokenizer)

    @property
    def ended(self) -> bool:
        """Whether the episode is over; then `grade` is final."""
        return self.stop_reason is not None

    @property
    def template(self) -> Template | None:
        """The template of the running episode's sandbox; None where there is no sandbox."""
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
        factory = self._factory
        self._open(
            lambda: open_clean(factory.template(self.task), self.sandbox, factory.command_timeout_s)
        )
        prompt = self.toolset.prompt(keeps_shell=self.sandbox.shell == "persistent")
        prompt = with_instructions(prompt, factory.tool_format, self.toolset.schemas)
        self.messages = transcript.opening(prompt, self.task.problem_statement)
        text = transcript.seen_text(self.messages)
        if self._count is not None:
            self.usage.tokens += self._count.opening(self.messages)
        if self.bounds.has_wall_clock:
            self.usage.start_clock()
        if self.usage.spent(self.bounds):
            _log.warning(
                "%s: the prompt has %d tokens, of max_tokens=%s with reserve_tokens=%d, so that "
                "the first action will end the episode; raise max_tokens",
                self.task.task_id,
                self.usage.tokens,
                self.bounds.max_tokens,
                self.bounds.reserve_tokens,
            )
        self._outcome = Outcome(messages=tuple(self.messages), text=text)
        return self._outcome

    def snapshot(self) -> EpisodeSnapshot:
        """Returns all that the running episode is: files, chat, turns, and what it has used.

        Processes are not part of it, nor is the state of a persistent shell.

        Raises:
            EpisodeError: The episode was not started, has ended, was closed, or has no sandbox; or
                an action is under way in another thread.
            SandboxError: The sandbox died.
        """
        with self._running("snapshot"):
            if self._context is None or self._outcome is None:
                raise EpisodeError(
                    f"the episode has no sandbox to take a snapshot of: {self.error}"
                )
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
        """Opens a sandbox with a snapshot's files instead of `start`, and continues from there.

        Toolset, tokenizer, limits and sandbox are to be those of the episode it was taken of.
        After an infrastructure failure the episode is stillborn, as for `start`.

        Args:
            snapshot: Of an episode of this task.

        Returns:
            The last outcome before the snapshot.

        Raises:
            EpisodeError: The episode was started, or is of another task.
            SandboxUnavailableError: This machine cannot run the sandbox at all.
        """
        if self.messages or snapshot.task != self.task:
            raise EpisodeError("a snapshot restores into a new episode of its task")
        self._open(
            lambda: open_restored(
                snapshot.template,
                snapshot.files,
                snapshot.tool_state,
                self._factory.command_timeout_s,
            )
        )
        self.messages, self._turns = list(snapshot.messages), list(snapshot.turns)
        self.usage = snapshot.usage.copy()
        if self.bounds.has_wall_clock:
            self.usage.start_clock()
        self._outcome = snapshot.outcome
        return snapshot.outcome

    def _open(self, open_once: Callable[[], Context]) -> None:
        """Opens the sandbox, with a second attempt where the first one fails."""
        task_id = self.task.task_id
        for attempt in ("first", "second"):
            try:
                self._context, self.error = open_once(), ""
            except SandboxUnavailableError:
                raise
            except MachineryError as failure:
                _log.info("%s attempt to start %s: %s", attempt, task_id, failure)
                self.error = str(failure)
                if isinstance(failure, TemplateError):  # fails again, perhaps after half an hour
                    break
            else:
                return
        _log.error("%s could not be started: %s", task_id, self.error)

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
        with self._running("step", alone=True):
            began = time.perf_counter()
            self.usage.turns += 1
            played = _Played()
            reason = self._play(action, played) or self.usage.spent_turns(self.bounds)
            reward = self._finish(reason) if reason else 0.0
            self.messages += played.messages
            self._outcome = Outcome(
                messages=tuple(played.messages),
                text=transcript.seen_text(played.messages),
                reward=reward,
                reward_parts={"resolved": reward} if reason else {},
                stop_reason=self.stop_reason,
            )
            duration_s = time.perf_counter() - began
            self._turns.append(
                replace(
                    self._sampled(action),
                    calls=played.calls,
                    results=tuple(played.results),
                    observation=self._outcome.text,
                    reward=reward,
                    reward_parts=self._outcome.reward_parts,
                    duration_s=duration_s,
                )
            )
            return self._outcome

    @contextmanager
    def access(self) -> Iterator[Context]:
        """Lends the sandbox to a harness with a loop of its own.

        An infrastructure failure inside the block ends the episode, as by `discard_sandbox`, and is
        raised: a harness may turn it into text for its model, and the grade is masked all the same.

        Raises:
            EpisodeError: As for `snapshot`.
        """
        with self._running("access"):
            if self._context is None:
                raise EpisodeError(f"the episode has no sandbox: {self.error}")
            try:
                yield self._context
            except MachineryError as failure:
                self.discard_sandbox(failure)
                raise

    def discard_sandbox(self, failure: MachineryError) -> None:
        """Closes the sandbox after an infrastructure failure; the next action ends the episode.

        For code that drives the episode and fails where the episode itself did not.
        """
        context, self._context = self._context, None
        if context is not None and not self.ended:
            self.error = str(failure)
            context.sandbox.close()

    def _play(self, action: str, played: _Played) -> StopReason | None:
        """Answers one action and returns why it ends the episode, or None."""
        context = self._context
        if context is None:
            return StopReason.SANDBOX_ERROR
        self.error = ""
        if isinstance(action, Stop):
            return StopReason.STOPPED
        reason = self.usage.spent(self.bounds)
        if reason:  # by the prompt, or by the time since the last turn
            return reason
        if self._count is not None:
            ids = self._reply_ids(action)
            self.usage.charge(self.bounds, len(ids))
            self.usage.tokens += self._count.reply(ids)
        parsed = self._read(action)
        # A call without a name is answered by a notice, and servers want those behind the results.
        played.calls = tuple(sorted(parsed.calls, key=lambda call: not call.name))
        played.messages.append(transcript.assistant(str(action), parsed))
        if parsed.calls:
            is_unreadable = all(call.error for call in parsed.calls)
            self.usage.format_errors = self.usage.format_errors + 1 if is_unreadable else 0
        try:
            if parsed.calls:
                reason = self._run_calls(played.calls, context, played)
            else:
                reason = self._answer_no_call(str(action), parsed.error, context, played)
        except MachineryError as failure:
            reason, self.error = StopReason.SANDBOX_ERROR, str(failure)
        if self._count is not None:
            self.usage.tokens += self._count.close()
        return reason

    def _read(self, action: str) -> ParsedAction:
        """Returns the calls that an action carries, else those of its text."""
        if isinstance(action, Completion) and action.calls is not None:
            parsed = parsed_calls(action.calls, str(action), self.toolset.schemas)
        else:
            parsed = parse_action(
                str(action),
                self._factory.tool_format,
                self.toolset.schemas,
                text_formats=self.toolset.text_formats,
                tokenizer=self.tokenizer,
            )
        reasoning = action.reasoning if isinstance(action, Completion) else ""
        return replace(parsed, reasoning=well_formed(reasoning)) if reasoning else parsed

    def _reply_ids(self, action: str) -> Sequence[int]:
        """Returns the sampled ids of an action, else an encoding of it."""
        if not isinstance(action, Completion):
            return self.tokenizer.encode(action)
        return action.token_ids if action.exact else self.tokenizer.encode(action.written)

    def _sampled(self, action: str) -> Turn:
        """Returns a turn with the action's part; ids of plain text are for `trajectory` to add."""
        if not isinstance(action, Completion):
            return Turn(action=str(action), exact=isinstance(action, Stop))  # no policy wrote it
        return Turn(
            action=str(action),
            token_ids=tuple(self._reply_ids(action)),
            exact=action.exact,
            logprobs=action.logprobs,
            carries_calls=action.calls is not None,
            weight_version=action.weight_version,
        )

    def _run_calls(
        self, calls: Sequence[ToolCall], context: Context, played: _Played
    ) -> StopReason | None:
        """Runs the calls of one action in order, until one of them ends the episode."""
        for call in calls:
            result = self._execute(call, context)
            played.results.append(result)
            self._tell(transcript.answer(call, result), played)
            self.usage.tool_calls += 1
            reason = StopReason.SUBMITTED if result.submitted else self.usage.spent(self.bounds)
            if reason:
                return reason
        return None

    def _execute(self, call: ToolCall, context: Context) -> ToolResult:
        """Runs one call; a warning stands in front of the answer, of every kind of it."""
        usage, bounds = self.usage, self.bounds
        if bounds.max_repeats is not None:
            usage.note_call(self.toolset.canonical(call))
        if bounds.max_seconds is not None:
            left = usage.seconds_left(bounds) or 0.0
            if left < context.command_timeout_s:
                context = replace(context, command_timeout_s=max(left, _LEAST_S))
        began = time.perf_counter()
        result = self.toolset.execute(call, context)
        duration_s = time.perf_counter() - began
        if bounds.max_seconds is not None and not bounds.has_wall_clock:
            usage.seconds += duration_s
        content = usage.warning(bounds, call) + result.content
        return replace(result, content=content, call_id=call.call_id, duration_s=duration_s)

    def _answer_no_call(
        self, action: str, problem: str, context: Context, played: _Played
    ) -> StopReason | None:
        """Answers a reply without a call by a user message, which has no warning of a budget."""
        if problem:
            reply = problem
            if self.bounds.max_repeats is not None:
                self.usage.note_call(ToolCall("", {"error": problem}))
                if self.usage.repeats == self.bounds.max_repeats:
                    unread = ToolCall("", {"command": action})
                    reply = collapse_warning(unread, self.usage.repeats) + problem
            self.usage.tool_calls += 1
            self.usage.format_errors += 1
        else:
            answer = self.toolset.on_no_call(context)
            if answer.ends:
                return StopReason.NO_TOOL_CALL
            self.usage.tool_calls += answer.costs_call
            self.usage.format_errors += answer.is_format_error
            reply = answer.reply
        self._tell(transcript.user(reply), played)
        return self.usage.spent(self.bounds)

    def _tell(self, message: Message, played: _Played) -> None:
        """Adds an answer to the chat."""
        played.messages.append(message)
        if self._count is not None:
            self.usage.tokens += self._count.answer(message)

    def _finish(self, reason: StopReason) -> float:
        """Ends the episode and returns its reward; an infrastructure failure replaces the reason.

        The context is taken away first, so that whatever ends an episode grades it only once.
        """
        self.usage.stop_clock()
        context, self._context = self._context, None
        try:
            if context is None:
                reason = StopReason.SANDBOX_ERROR
            elif reason.is_machinery:
                context.sandbox.close()
            else:
                self.grade = self._grade(context)
        except GradingError as failure:
            reason, self.error = StopReason.GRADING_ERROR, str(failure)
        except MachineryError as failure:
            reason, self.error = StopReason.SANDBOX_ERROR, str(failure)
        self.stop_reason = reason
        return float(self.grade is not None and self.grade.resolved)

    def _grade(self, context: Context) -> Grade:
        """Takes the patch, frees the sandbox and grades the patch."""
        try:
            with context.sandbox as sandbox:
                self._patch = diff(sandbox, context.template)
        except PatchError as problem:  # the policy made a tree that cannot be put into a patch
            reason = GradeReason.PATCH_NOT_APPLIED
            return Grade(resolved=False, reason=reason, detail=str(problem))
        if not self._factory.is_graded:
            return Grade(resolved=False, reason=GradeReason.NOT_GRADED)
        backend, challenge = self.sandbox.name, self._factory.challenge

        def graded() -> Grade:
            return grade_patch(
                self.task, context.template, self._patch, backend=backend, challenge=challenge
            )

        if self._factory.grading != "cached":
            return graded()
        what = plan_key(self.task, context.template), context.template.key, self._patch.text
        return _grades.get((*what, backend, challenge), graded)

    def patch(self) -> Patch:
        """Returns the change so far, or the graded one once the episode has ended.

        Raises:
            PatchError: The tree cannot be put into a patch (too large, for instance).
            SandboxError: The sandbox died.
        """
        if self._context is None:
            return self._patch
        return diff(self._context.sandbox, self._context.template)

    def refuse_patch(self, text: str, why: str) -> None:
        """Records a patch that does not apply, with its grade, once the episode has ended.

        Args:
            text: The patch, which need not be a diff.
            why: The reason, for the grade's detail.
        """
        self._patch = Patch(text)
        reason = GradeReason.PATCH_NOT_APPLIED
        self.grade = Grade(resolved=False, reason=reason, detail=why)

    def trajectory(self) -> Trajectory:
        """Returns what happened so far; plain replies are encoded here and marked inexact."""
        encode = self.tokenizer.encode
        return Trajectory(
            task_id=self.task.task_id,
            messages=tuple(self.messages),
            turns=tuple(
                turn
                if turn.exact
                else replace(turn, token_ids=turn.token_ids or tuple(encode(turn.action)))
                for turn in self._turns
            ),
            stop_reason=self.stop_reason,
            patch=self._patch.text,
            grade=self.grade,
            toolset=self.toolset.name,
            tokenizer=self.tokenizer.name,
            tools=tuple(deepcopy(dict(schema)) for schema in self.toolset.schemas),
            usage=self.usage.counted(self.bounds),
            cost=self.usage.known_cost(self.bounds),
            error=self.error,
            settings=self._factory.recorded(self.task),
        )

    def render(self) -> str:
        """Returns the transcript as text that a person can follow."""
        footer = ""
        if self.stop_reason is not None:
            verdict = self.grade.reason if self.grade else self.error
            footer = f"── {self.stop_reason} after {self.usage.turns} turns: {verdict} ──"
        return transcript.render(self.messages, footer)

    def info(self) -> dict[str, Any]:
        """Returns what is known of the episode now; no gold.

        The values are JSON's, but for the `Grade` at the end, whose ``duration_s`` is 0 here; its
        ``detail`` may quote what tests printed. The only timing is what is left of ``max_seconds``.
        """
        reason = self.stop_reason
        data: dict[str, Any] = {
            "task_id": self.task.task_id,
            "turn": self.usage.turns,
            "tool_calls": self.usage.tool_calls,
            "budget": self.usage.left(self.bounds),
            "stop_reason": None if reason is None else str(reason),
            "error": "" if reason is None else self.error,
            "mask_sample": reason is not None and reason.is_machinery,
        }
        if reason is not None:
            grade = self.grade
            data["resolved"] = grade is not None and grade.resolved
            data["grade"] = None if grade is None else _for_info(grade)
            data["patch"] = self._patch.text
        return data

    def close(self) -> None:
        """Frees the sandbox without grading; idempotent."""
        self._closed = True
        context, self._context = self._context, None
        if context is not None:
            context.sandbox.close()

    @contextmanager
    def _running(self, what: str, *, alone: bool = False) -> Iterator[None]:
        """Guards a call on the running episode; an action runs alone, snapshots beside each other.

        Raises:
            EpisodeError: The episode is not running, or a call that excludes this one is under way.
        """
        with self._lock:
            if self._is_stepping or (alone and self._num_under_way):
                raise EpisodeError(
                    f"{what} was called while {'an action' if self._is_stepping else 'a snapshot'}"
                    " of the episode is under way in another thread; wait for it"
                )
            if not self.messages:
                raise EpisodeError(f"{what} was called before start")
            if self.stop_reason is not None:
                raise EpisodeError(f"the episode has ended ({self.stop_reason}); start another one")
            if self._closed:
                raise EpisodeError("the episode was closed; start another one")
            self._num_under_way += 1
            self._is_stepping = alone
        try:
            yield
        finally:
            with self._lock:
                self._num_under_way -= 1
                self._is_stepping = False


def _for_info(grade: Grade) -> Grade:
    """Returns a copy without a timing; wrappers edit infos, and the record stays as it was."""
    return replace(
        grade,
        fail_to_pass=dict(grade.fail_to_pass),
        pass_to_pass=dict(grade.pass_to_pass),
        levels=dict(grade.levels),
        duration_s=0.0,
    )
