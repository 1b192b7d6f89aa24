"""One repair attempt, from a clean checkout to a graded patch, independent of Gymnasium."""

import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, field, replace
from functools import cache, partial
from itertools import takewhile
from operator import eq
from typing import Any, ClassVar

from coding_gym.action import Completion, Stop
from coding_gym.calls import SUMMED_COUNTS, ModelCall, ToolCall, ToolResult
from coding_gym.episode import transcript
from coding_gym.episode.config import EpisodeConfig
from coding_gym.episode.usage import Usage, collapse_warning, total_cost, total_usage
from coding_gym.errors import (
    EpisodeError,
    GradingError,
    InfrastructureError,
    InvalidArgumentError,
    PatchError,
    SandboxUnavailableError,
    TemplateError,
)
from coding_gym.grade import Grade, GradeReason
from coding_gym.grading import grade as grade_patch
from coding_gym.grading.plan import plan_key
from coding_gym.json_record import JsonRecord
from coding_gym.patch import Patch
from coding_gym.process_cache import ProcessCache
from coding_gym.sandbox import Sandbox, SandboxSpec, Snapshot
from coding_gym.task import Task
from coding_gym.text.chat import get_chat
from coding_gym.text.chat_history import ChatIds
from coding_gym.text.neutral import restore
from coding_gym.text.tokenizers import get_tokenizer
from coding_gym.text.truncate import well_formed
from coding_gym.tools import ToolContext, get_toolset
from coding_gym.tools.formats import ParsedAction, ReplyParser
from coding_gym.trajectory import Message, StopReason, Trajectory, Turn
from coding_gym.workspace import Template, diff

# The notice after an empty or truncated reply that would otherwise end the episode.
_NO_CONTENT = "The reply is truncated or has only reasoning. Call a tool, or say what is done."
_MIN_TIMEOUT_S = 0.001  # because sandboxes require a timeout above 0

_log = logging.getLogger(__name__)
_grades = ProcessCache[Grade](1 << 14)


@dataclass(frozen=True, slots=True, kw_only=True)
class EpisodeSnapshot(JsonRecord):
    """The state of a running episode between two turns; `Episode.restore` continues from it.

    A snapshot has no sandbox and can be restored any number of times. Do not modify a snapshot.

    Attributes:
        task: The task.
        files: The changed files of the sandbox.
        opening: The messages before the first turn.
        turns: The turns so far.
        usage: The usage of the limits by these turns.
    """

    task: Task
    files: Snapshot = field(repr=False)
    opening: tuple[Message, ...] = field(repr=False)
    turns: tuple[Turn, ...] = field(repr=False)
    usage: Usage

    not_written: ClassVar[Any] = {"task", "files"}


class Episode:
    """One attempt at one task.

    `start` opens the sandbox, and `step` plays one action. The last `step` also grades the tree.
    An infrastructure failure ends the episode: `step` raises no exception, but sets `stop_reason`
    and `error`. `snapshot` returns the state between two turns, and `restore` starts another
    `Episode` from this state.

    A harness (an agent with its own loop) uses `access`, not `step`. Call `reached_limit` before a
    request of the harness, `count_reply` and `record_turn` after a reply, and `stop` for the grade.

    Args:
        task: The task.
        config: The settings.

    Attributes:
        task, config: The task to repair, and the settings.
        toolset, tokenizer, tool_format: The toolset, the tokenizer and the format of the config.
        template: The template of the open sandbox, or None.
        harness: The name of a harness that plays the episode; set it before `start`.
        tools: The schemas of the policy's tools.
        bounds: The limits of the config, with the task's limit of turns if that is lower.
        usage: The usage of ``bounds`` so far.
        split_tokens: Control tokens that the caller splits in observations by `neutralise`; the
            episode joins them in arguments of calls before a call runs.
        prediction: A patch to grade instead of the tree, or None.
        model_calls: The requests to the model so far, without the ids of prompts. They include
            requests of discarded turns, and of a harness that disconnected before the reply.
        num_prefix_breaks: As in `Trajectory`.
        opening: The messages before the first turn; empty before `start`.
        stop_reason: The reason why the episode ended; None before the end.
        grade: The verdict; None before the end, and after an infrastructure failure.
        error: The message of the last infrastructure failure, or "".
    """

    def __init__(self, task: Task, config: EpisodeConfig) -> None:
        self.task, self.config = task, config
        self.toolset, self.tokenizer = get_toolset(config.toolset), get_tokenizer(config.tokenizer)
        self.tool_format = config.tool_format
        self._parser = _parser(config.tool_format, config.toolset, config.tokenizer)
        self.harness = ""
        self.tools: Sequence[Mapping[str, Any]] = self.toolset.schemas
        self.bounds = config.limits.with_turns(task.max_turns)
        self.usage = Usage()
        self.split_tokens: Sequence[str] = ()
        self.prediction: Patch | None = None
        self.opening: tuple[Message, ...] = ()
        self.template: Template | None = None
        self.stop_reason: StopReason | None = None
        self.grade: Grade | None = None
        self.error = ""
        self.num_prefix_breaks: int | None = None
        self.model_calls: list[ModelCall] = []
        self._history: tuple[int, ...] = ()  # ids of the last prompt and its reply
        self._start_s: float | None = None  # time of the first request of a harness
        self._turns: list[Turn] = []
        self._call_ids: set[str] = set()
        self._messages: list[Message] = []  # of the current action and its results
        self._results: list[ToolResult] = []
        self._context: ToolContext | None = None
        self._patch = Patch()
        self._closed = False
        self._lock = threading.Lock()  # guards `_context`, `template` and `_closed`
        self._call_lock = threading.Lock()  # held by a call that uses the sandbox
        self._chat: ChatIds | None = None  # only if a limit counts tokens
        if self.bounds.counts_tokens:
            self._chat = ChatIds(get_chat(self.tokenizer, self.toolset.schemas, self.tool_format))

    @property
    def ended(self) -> bool:
        """Whether the episode has ended; then `grade` is final."""
        return self.stop_reason is not None

    @property
    def is_running(self) -> bool:
        """Whether the episode was started, has not ended, and is not closed."""
        return bool(self.opening) and not self.ended and not self._closed

    @property
    def turns(self) -> tuple[Turn, ...]:
        """The turns so far; for replies of plain text, only `trajectory` has token ids."""
        return tuple(self._turns)

    @property
    def messages(self) -> list[Message]:
        """The chat so far: the opening and the messages of all turns."""
        return [*self.opening, *(message for turn in self._turns for message in turn.messages)]

    def start(self, change: Callable[[SandboxSpec], SandboxSpec] = lambda spec: spec) -> None:
        """Opens the sandbox and creates the first messages of the chat.

        If the sandbox cannot be opened, there is a second attempt. After a second failure, or if
        the template cannot be built, the episode has no sandbox, and the first `step` ends the
        episode with ``SANDBOX_ERROR``.

        Args:
            change: As for `EpisodeConfig.open`.

        Raises:
            EpisodeError: The episode was started before, or closed during its start.
            SandboxUnavailableError: This machine cannot run the sandbox at all.
            InvalidArgumentError: The image of the config lacks a required program.
            InvalidTaskError: The tree of the task cannot be built.
        """
        self._open(partial(self.config.open, self.task, change))
        issue = transcript.user_message(self.task.problem_statement)
        if self.harness:
            self.opening, self.tools = (issue,), ()  # until the first request
            return
        self.opening = {"role": "system", "content": self.config.system_prompt}, issue
        if self._chat is not None:
            self._chat.opening(self.opening)
            self.usage.tokens += len(self._chat)

    def snapshot(self) -> EpisodeSnapshot:
        """Returns the state of the running episode: files, chat, turns, and the usage of limits.

        Processes are not included.

        Raises:
            EpisodeError: The episode was not started, has ended, was closed, has no sandbox, or is
                used by another call.
            SandboxError: The sandbox died.
        """
        with self._using_sandbox("snapshot") as (context, _):
            return EpisodeSnapshot(
                task=self.task,
                files=context.sandbox.snapshot(),
                opening=self.opening,
                turns=self.turns,
                usage=replace(self.usage),
            )

    def restore(self, snapshot: EpisodeSnapshot) -> None:
        """Starts the episode from a snapshot; call this method instead of `start`.

        The config must equal the config of the snapshot's episode. If the sandbox cannot be opened,
        the first `step` ends the episode with ``SANDBOX_ERROR``, as for `start`.

        Args:
            snapshot: A snapshot of an episode of this task.

        Raises:
            EpisodeError: The episode was started before, or closed during its start; or the
                snapshot has another task.
            SandboxUnavailableError: This machine cannot run the sandbox at all.
        """
        if snapshot.task != self.task:
            raise EpisodeError(
                f"the snapshot is of task {snapshot.task.task_id}, but this episode has task "
                f"{self.task.task_id} or a changed task; create the episode with snapshot.task"
            )
        self._open(partial(self.config.open, self.task, files=snapshot.files))
        self.opening, self._turns = snapshot.opening, list(snapshot.turns)
        self._call_ids = {call.call_id for turn in self._turns for call in turn.calls}
        self.usage = replace(snapshot.usage)
        for turn in self._turns:
            call = turn.model_call
            self._note_request(call)
            if call is not None and turn.has_prompt_ids:
                prompt = self._history[: call.prefix_length] + call.prompt_ids
                self._note_ids(prompt, turn.token_ids)

    def _open(self, open_once: Callable[[], tuple[Sandbox, Template]]) -> None:
        """Opens the sandbox, with a second attempt if the first attempt fails."""
        if self.opening:
            raise EpisodeError("an episode can be started only once; create another episode")
        task_id = self.task.task_id
        for attempt in ("first", "second"):
            try:
                sandbox, template = open_once()
            except SandboxUnavailableError:
                raise
            except InfrastructureError as failure:
                _log.info("%s attempt to start %s failed: %s", attempt, task_id, failure)
                self.error = str(failure)
                if isinstance(failure, TemplateError):  # a second build would also fail
                    break
            else:
                context = ToolContext(sandbox, self.config.command_timeout_s)
                with self._lock:
                    if not self._closed:
                        self._context, self.template, self.error = context, template, ""
                        return
                sandbox.close()
                raise EpisodeError("the episode was closed during its start; start another episode")
        _log.error("%s could not be started: %s", task_id, self.error)

    def step(self, action: str) -> Turn:
        """Plays one action and returns the turn: the action and its results.

        If the prompt alone uses up the token budget, the first action ends the episode with
        ``MAX_TOKENS``, and its calls are neither parsed nor run.

        Args:
            action: The policy's reply: any text, a `Completion`, or a `Stop`.

        Raises:
            EpisodeError: The episode was not started, has ended, was closed, or is used by another
                call.
            Exception: A tool of the toolset has a bug. As after Ctrl-C, the turn is discarded, and
                the next action ends the episode with ``SANDBOX_ERROR``.
        """
        with self._running("step"):
            usage = replace(self.usage)
            try:
                if isinstance(action, Completion):
                    self._note_request(action.model_call)
                return self._play(action)
            except BaseException as failure:
                self.usage, self.error = usage, f"a turn was interrupted: {failure!r}"
                self._free()
                raise

    def _play(self, action: str) -> Turn:
        start = time.perf_counter()
        reply = action if isinstance(action, Completion) else Completion(action)
        self._messages, self._results = [], []
        calls: tuple[ToolCall, ...] = ()
        context = self._context  # another thread can call `close`
        if context is None:
            reason: StopReason | None = StopReason.SANDBOX_ERROR
        else:
            self.error = ""
            is_stop = isinstance(action, Stop)
            reason = StopReason.STOPPED if is_stop else self.usage.spent(self.bounds)
        if context is not None and reason is None:
            parsed = self._read(reply)
            calls = parsed.calls
            self._messages.append(transcript.assistant_message(str(reply), parsed))
            reason = self._respond(context, reply, parsed)
        self.usage.turns += 1
        reason = reason or self.usage.spent(self.bounds)
        reward = self._finish(reason) if reason else 0.0
        turn = Turn.of(
            reply,
            # `trajectory` adds the ids of plain text, because encoding takes time.
            token_ids=tuple(self._ids_of(reply)) if reply is action else (),
            exact=reply.exact or isinstance(action, Stop),  # a Stop has no sampled ids
            messages=tuple(self._messages),
            calls=calls,
            results=tuple(self._results),
            observation=transcript.visible_text(self._messages),
            reward=reward,
            reward_parts={"resolved": reward} if reason else {},
            model_call=self._continued(reply),
            duration_s=time.perf_counter() - start,
        )
        self._turns.append(turn)
        return turn

    @contextmanager
    def access(self) -> Iterator[ToolContext]:
        """Yields the tool context with the sandbox, for a harness with its own loop.

        If the block raises an infrastructure failure, `access` calls `discard_sandbox` and raises
        the failure again. So the sample is masked even if the caller catches the failure.

        Raises:
            EpisodeError: As for `snapshot`.
        """
        with self._using_sandbox("access") as (context, _):
            try:
                yield context
            except InfrastructureError as failure:
                self.discard_sandbox(failure)
                raise

    def reached_limit(self) -> StopReason | None:
        """Returns the reason to stop at a limit, or None; the first call starts the clock."""
        now_s = time.monotonic()
        self._start_s = now_s if self._start_s is None else self._start_s
        self.usage.seconds = now_s - self._start_s
        return self.usage.spent(self.bounds)

    def count_reply(self, reply: Completion) -> None:
        """Counts a reply to a harness. If the harness receives the reply, call `record_turn` next.

        Raises:
            InvalidArgumentError: A limit needs the number of tokens, which is unknown.
        """
        call = reply.model_call or ModelCall()
        self._note_request(call)
        if self.bounds.counts_tokens and None in (call.prompt_tokens, call.completion_tokens):
            raise InvalidArgumentError(
                "the server sent no token counts, which max_tokens and max_cost need; omit both"
            )
        self.usage.add_reply(self.bounds, call, len(reply.calls or ()))

    def _note_request(self, call: ModelCall | None) -> None:
        if call is not None:
            self.model_calls.append(replace(call, prompt_ids=()))

    def record_turn(
        self, reply: Completion, prompt: Sequence[Message], continues: int | None = None
    ) -> Turn:
        """Records a reply to a harness as a turn, without running its calls.

        The results of a turn are read from the first prompt that continues the chat of the turn.

        Args:
            reply: The reply.
            prompt: The messages of the request, without the messages of the continued chat.
            continues: The number of the turn whose chat the request continues; None for a new chat.
        """
        turns = self._turns
        if continues is not None and not (turns[continues].results or turns[continues].observation):
            results = tuple(
                ToolResult(item["content"], None, item.get("tool_call_id", ""))
                for item in prompt
                if item["role"] == "tool"
            )
            text = transcript.visible_text(prompt)
            turns[continues] = replace(turns[continues], results=results, observation=text)
        if turns:
            turns[-1] = replace(turns[-1], messages=(*turns[-1].messages, *prompt))
        else:
            self.opening = tuple(prompt)
        turn = Turn.of(
            reply,
            token_ids=tuple(self._ids_of(reply)),
            messages=(transcript.reply_message(reply),),
            model_call=self._continued(reply),
        )
        turns.append(turn)
        return turn

    def _continued(self, reply: Completion) -> ModelCall | None:
        """Returns the request of a reply; the number of repeated ids replaces the repeated ids."""
        call = reply.model_call
        if call is None or not (call.prompt_ids and reply.exact):  # as `Turn.has_prompt_ids`
            return call
        length = self._note_ids(call.prompt_ids, reply.token_ids)
        return replace(call, prefix_length=length, prompt_ids=call.prompt_ids[length:])

    def _note_ids(self, prompt: tuple[int, ...], reply: tuple[int, ...]) -> int:
        """Returns how many ids a prompt repeats from the previous prompt and reply."""
        length: int = sum(takewhile(bool, map(eq, prompt, self._history)))
        is_break = length < len(self._history)
        self.num_prefix_breaks = (self.num_prefix_breaks or 0) + is_break
        self._history = prompt + reply
        return length

    def stop(self, text: str, reason: StopReason) -> Turn:
        """Ends the episode as a `Stop` does; an infrastructure failure replaces the reason."""
        turn = self.step(Stop(text))
        if self.stop_reason is StopReason.STOPPED:
            self.stop_reason = reason
        return turn

    def discard_sandbox(self, failure: InfrastructureError) -> None:
        """Closes the sandbox after an infrastructure failure; the next action ends the episode.

        Code that drives the episode calls this method after a failure outside `step`.
        """
        if self._context is not None and not self.ended:
            self.error = str(failure)
            self._free()

    def _remove_context(self) -> tuple[ToolContext | None, Template | None]:
        with self._lock:
            context, template = self._context, self.template
            self._context = self.template = None
        return context, template

    def _free(self) -> None:
        context, _ = self._remove_context()
        if context is not None:
            context.sandbox.close()

    def _read(self, reply: Completion) -> ParsedAction:
        """Counts the tokens of a reply; returns the reply with its calls, parsed if necessary."""
        if self._chat is not None:
            ids = self._ids_of(reply)
            self.usage.charge(self.bounds, self.usage.tokens, len(ids))
            self.usage.tokens += len(ids)
            self._chat.reply(ids)
        parsed = self._parser.read(str(reply), self._call_ids, reply.calls)
        self._call_ids.update([call.call_id for call in parsed.calls])
        if reply.reasoning:
            parsed = replace(parsed, reasoning=well_formed(reply.reasoning))
        return parsed

    def _ids_of(self, reply: Completion) -> Sequence[int]:
        """Returns the sampled ids of a reply; without them, an encoding of the reply."""
        return reply.token_ids or self.tokenizer.encode(reply.full_text)

    def _respond(
        self, context: ToolContext, reply: Completion, parsed: ParsedAction
    ) -> StopReason | None:
        """Responds to a reply; returns the reason to end the episode, or None."""
        try:
            if parsed.calls:
                return self._run_calls(context, parsed.calls)
            return self._respond_without_call(context, reply, parsed)
        except InfrastructureError as failure:
            self.error = str(failure)
            return StopReason.SANDBOX_ERROR

    def _run_calls(self, context: ToolContext, calls: Sequence[ToolCall]) -> StopReason | None:
        """Runs the calls of one action in order; returns the reason if a call ends the episode."""
        is_unreadable = all(call.error for call in calls)
        self.usage.format_errors = self.usage.format_errors + 1 if is_unreadable else 0
        for call in calls:
            result = self._execute(context, call)
            self._results.append(result)
            self._add({"role": "tool", "tool_call_id": result.call_id, "content": result.content})
            self.usage.tool_calls += 1
            reason = StopReason.SUBMITTED if result.submitted else self.usage.spent(self.bounds)
            if reason:
                return reason
        return None

    def _execute(self, context: ToolContext, call: ToolCall) -> ToolResult:
        """Runs one call and returns the result; warnings precede the text of the result."""
        usage, bounds = self.usage, self.bounds
        if bounds.max_repeats is not None:
            usage.note_call(call)
        if bounds.max_seconds is not None:
            seconds_left = usage.seconds_left(bounds) or 0.0
            if seconds_left < context.command_timeout_s:
                context = replace(context, command_timeout_s=max(seconds_left, _MIN_TIMEOUT_S))
        restored_call = replace(call, arguments=restore(call.arguments, self.split_tokens))
        start = time.perf_counter()
        result = self.toolset.execute(restored_call, context)
        duration_s = time.perf_counter() - start
        if bounds.max_seconds is not None:
            usage.seconds += duration_s
        content = usage.warning(bounds, call) + result.content
        return replace(result, content=content, call_id=call.call_id, duration_s=duration_s)

    def _respond_without_call(
        self, context: ToolContext, reply: Completion, parsed: ParsedAction
    ) -> StopReason | None:
        """Ends the episode after a reply without a call, or sends a notice to the policy."""
        if parsed.error:
            notice = parsed.error
            if self.bounds.max_repeats is not None:
                self.usage.note_call(ToolCall("", {"error": notice}))
                if self.usage.repeats == self.bounds.max_repeats:
                    unreadable_call = ToolCall("", {"command": str(reply)})
                    notice = collapse_warning(unreadable_call, self.usage.repeats) + notice
            self.usage.tool_calls += 1
            self.usage.format_errors += 1
        else:
            notice, template = self.toolset.no_call_reply, self.template
            if self.toolset.no_call_ends and template and _is_changed(context.sandbox, template):
                if not reply.is_cut and transcript.has_content(parsed.text):
                    return StopReason.NO_TOOL_CALL
                notice = _NO_CONTENT
            self.usage.tool_calls += 1
            errors = self.usage.format_errors
            self.usage.format_errors = 0 if self.toolset.no_call_ends else errors + 1
        self._add(transcript.user_message(notice))
        return self.usage.spent(self.bounds)

    def _add(self, message: Message) -> None:
        """Adds a message to the messages of the action."""
        self._messages.append(message)
        if self._chat is not None:
            num_tokens = len(self._chat)
            self._chat.answer(message)
            self.usage.tokens += len(self._chat) - num_tokens

    def _finish(self, reason: StopReason) -> float:
        """Ends the episode and returns its reward; an infrastructure failure replaces the reason.

        The context is removed first, so that an episode is graded only once.
        """
        context, template = self._remove_context()
        try:
            if context is None or template is None:
                reason = StopReason.SANDBOX_ERROR
            elif reason.is_infrastructure_failure:
                context.sandbox.close()
            else:
                grade, excluded = self._grade(context.sandbox, template), self._patch.excluded
                if excluded and self._messages:  # a Stop has no message to respond to
                    self._add(transcript.user_message(transcript.excluded_note(excluded)))
                self.grade = replace(grade, dropped_paths=grade.dropped_paths + excluded)
        except GradingError as failure:
            reason, self.error = StopReason.GRADING_ERROR, str(failure)
        except InfrastructureError as failure:
            reason, self.error = StopReason.SANDBOX_ERROR, str(failure)
        self.stop_reason = reason
        return float(self.grade is not None and self.grade.resolved)

    def _grade(self, sandbox: Sandbox, template: Template) -> Grade:
        """Extracts the patch, frees the sandbox and grades the patch."""
        try:
            with sandbox:
                self._patch = self.prediction or diff(sandbox, template)
        except PatchError as problem:  # a patch cannot represent the policy's tree
            hacked = False if self.task.impossible_test else None
            reason, detail = GradeReason.PATCH_NOT_APPLIED, str(problem)
            return Grade(resolved=False, reason=reason, detail=detail, hacked=hacked)
        if not self.config.is_graded:
            return Grade(resolved=False, reason=GradeReason.NOT_GRADED)
        backend, challenge = self.config.sandbox.name, self.config.challenge

        def compute() -> Grade:
            return grade_patch(
                self.task, template, self._patch, backend=backend, challenge=challenge
            )

        if self.config.grading != "cached":
            return compute()
        key = plan_key(self.task, template), template.key, self._patch.text
        return _grades.get((*key, self.task.impossible_test, backend, challenge), compute)

    def patch(self) -> Patch:
        """Returns the diff of the current tree; after the end of the episode, the graded diff.

        Raises:
            PatchError: A patch cannot represent the tree, for example a tree that is too large.
            EpisodeError, SandboxError: As for `snapshot`, before the end.
        """
        if self.ended:
            return self._patch
        with self._using_sandbox("patch") as (context, template):
            return diff(context.sandbox, template)

    def trajectory(self) -> Trajectory:
        """Returns the record so far; token ids of plain text are encodings, not sampled ids."""
        encode = self.tokenizer.encode
        counts = {"turns": self.usage.turns, "tool_calls": self.usage.tool_calls}
        tokens = {"tokens": self.usage.tokens} if self.bounds.counts_tokens else {}
        totals, cost = total_usage(self.model_calls), total_cost(self.model_calls)
        if cost is None and (not self.harness or totals.keys() >= {*SUMMED_COUNTS}):
            cost = self.usage.cost or None  # 0 without prices
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
            toolset=self.harness or self.toolset.name,
            tokenizer=self.tokenizer.name,
            tools=tuple(deepcopy(dict(schema)) for schema in self.tools),
            usage=counts | tokens | totals,
            cost=cost,
            num_prefix_breaks=self.num_prefix_breaks,
            error=self.error,
            error_class=self.stop_reason.error_class if self.stop_reason else "",
            settings=self.config.settings(self.task),
        )

    def render(self) -> str:
        """Returns the transcript as text for people."""
        footer = ""
        if self.stop_reason is not None:
            verdict = self.grade.reason if self.grade else self.error
            footer = f"── {self.stop_reason} after {self.usage.turns} turns: {verdict} ──"
        return transcript.render(self.messages, footer)

    def info(self) -> dict[str, Any]:
        """Returns the current state of the episode, without the gold patch.

        The values are JSON values, except the `Grade` at the end, whose ``duration_s`` is 0 here
        and whose ``detail`` can quote output of tests. The remaining seconds are the only timing.
        """
        reason = self.stop_reason
        data: dict[str, Any] = {
            "task_id": self.task.task_id,
            "turn": self.usage.turns,
            "tool_calls": self.usage.tool_calls,
            "budget": self.usage.left(self.bounds),
            "stop_reason": None if reason is None else str(reason),
            "error": "" if reason is None else self.error,
            "mask_sample": reason is not None and reason.is_infrastructure_failure,
        }
        if reason is not None:
            grade = self.grade
            data["resolved"] = grade is not None and grade.resolved
            data["grade"] = None if grade is None else deepcopy(replace(grade, duration_s=0.0))
            data["patch"] = self._patch.text
        return data

    def close(self) -> None:
        """Frees the sandbox without grading; idempotent."""
        with self._lock:  # `start` in another thread checks `_closed`
            self._closed = True
        self._free()

    @contextmanager
    def _running(self, name: str) -> Iterator[None]:
        """Checks that the episode is running, and rejects simultaneous calls.

        Raises:
            EpisodeError: The episode is not running, or another call uses it.
        """
        if not self._call_lock.acquire(blocking=False):
            raise EpisodeError(f"{name} was called during another call; wait until that call ends")
        try:
            if not self.opening:
                raise EpisodeError(f"{name} was called before start; call start first")
            if self.stop_reason is not None:
                cause = ": ".join(filter(None, (self.stop_reason, self.error)))
                raise EpisodeError(f"the episode has ended ({cause}); start another episode")
            if self._closed:
                raise EpisodeError("the episode was closed; start another episode")
            yield
        finally:
            self._call_lock.release()

    @contextmanager
    def _using_sandbox(self, name: str) -> Iterator[tuple[ToolContext, Template]]:
        """Yields context and template; raises EpisodeError if not running, or without a sandbox."""
        with self._running(name):
            context, template = self._context, self.template
            if context is None or template is None:
                raise EpisodeError(f"{name} needs a sandbox, which has failed: {self.error}")
            yield context, template


@cache
def _parser(tool_format: str, toolset: str, tokenizer: str) -> ReplyParser:
    """Returns the parser for these settings; each parser is created once per process."""
    tools = get_toolset(toolset)
    return ReplyParser(
        tool_format,
        tools.schemas,
        text_formats=tools.text_formats,
        tokenizer=get_tokenizer(tokenizer),
    )


def _is_changed(sandbox: Sandbox, template: Template) -> bool:
    """Returns whether the tree differs from the base tree."""
    try:
        return not diff(sandbox, template).is_empty
    except PatchError:  # an unchanged tree has an empty patch, which is valid
        return True
