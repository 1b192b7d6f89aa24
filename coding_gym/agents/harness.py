"""Other projects' harnesses: their environment is an episode, and their loop an agent of a run."""

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, Self

from coding_gym.action import Completion, Stop
from coding_gym.agents.chat import ChatAgent, Sampling
from coding_gym.agents.live_episode import LiveEpisode, PromptTooLongError
from coding_gym.agents.model_client import ModelClient, Reply
from coding_gym.calls import ExecResult, ToolResult
from coding_gym.episode import Episode, EpisodeFactory
from coding_gym.episode.transcript import seen_text
from coding_gym.errors import EpisodeError, GradingError, SandboxError
from coding_gym.grade import Grade
from coding_gym.patch import Patch
from coding_gym.task import Task
from coding_gym.text.truncate import scrub_runner_times
from coding_gym.tools.formats import parse_action
from coding_gym.trajectory import Message, StopReason, Turn

if TYPE_CHECKING:
    from concurrent.futures import Future

LITELLM_MODEL = "openai/model"
"""The model's name for a harness that calls LiteLLM; requests leave with the real one."""

_JSON = "application/json"
_KEPT = ("tool_calls", "tool_call_id", "reasoning_content")  # of a message, for the record


class HarnessEnvironment:
    """Runs a harness's commands in an episode's sandbox, and grades what is left in it.

    A harness may turn a failure of our side into text for its model. The episode is lost by it all
    the same, and `grade` raises, so that no policy is blamed.

    Args:
        task: A task, its row, or the id of a bundled one; or a started episode, which `open` then
            leaves as it is.
        sandbox: As for ``CodingRepair-v0``.

    Raises:
        UnknownTaskError, InvalidTaskError, InvalidArgumentError, UnknownNameError: An argument
            cannot be used.
    """

    def __init__(
        self,
        task: Task | str | Mapping[str, Any] | Episode,
        *,
        sandbox: str | Mapping[str, Any] = "auto",
    ) -> None:
        self._episode: Episode | None = None
        self._factory: EpisodeFactory | None = None
        if isinstance(task, Episode):
            self.task, self._episode = task.task, task
            return
        tasks = {"task_ids": [task]} if isinstance(task, str) else {"tasks": [task]}
        self._factory = EpisodeFactory.from_config(**tasks, sandbox=sandbox)
        self.task = self._factory.tasks[0]

    @property
    def episode(self) -> Episode:
        """The running or last episode; EpisodeError before the first `open`."""
        if self._episode is None:
            raise EpisodeError("there is no episode yet; let the harness play first")
        return self._episode

    def open(self) -> None:
        """Starts an episode at the base tree; the one before it is closed.

        Raises:
            SandboxError: The sandbox could not be opened.
            InvalidTaskError: The task's tree cannot be made.
        """
        if self._factory is not None:
            self.close()
            self._episode = self._factory.create(self.task)
            self._episode.start()
        if self.episode.error:
            raise SandboxError(self.episode.error)

    def run(self, command: str, **options: Any) -> ExecResult:
        """Runs a command as `Sandbox.run` does; how long tests took is set to zero in its output.

        Raises:
            EpisodeError: No episode is running.
            SandboxError: The sandbox died.
            InvalidArgumentError: The command cannot be run, as with a NUL byte in it.
        """
        with self.episode.access() as context:
            result = context.sandbox.run(command, **options)
        return replace(result, output=scrub_runner_times(result.output))

    def patch(self) -> Patch:
        """Returns the change so far, or the graded one; see `Episode.patch`."""
        return self.episode.patch()

    def grade(self) -> Grade:
        """Ends the episode and grades its patch in a clean sandbox, by the task's hidden tests.

        The grade names hidden tests: show nothing of it to a policy.

        Raises:
            EpisodeError: No episode was started, or it was closed before it was graded.
            SandboxError, GradingError: Our side failed, in the episode or in the grading.
        """
        episode = self.episode
        if not episode.ended:
            episode.step(Stop("the harness has finished"))
        if episode.grade is None:
            is_grading = episode.stop_reason is StopReason.GRADING_ERROR
            raise (GradingError if is_grading else SandboxError)(episode.error)
        return episode.grade

    def close(self) -> None:
        """Frees the sandbox; idempotent. What was not graded before cannot be graded any more."""
        if self._episode is not None:
            self._episode.close()

    def __enter__(self) -> Self:
        self.open()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@dataclass(frozen=True, slots=True, kw_only=True)
class Harness:
    """What a project's loop needs to be an agent of a run.

    Attributes:
        package: Its distribution, which is the agent's name too.
        make: Makes its agent for a started episode, an OpenAI client and a way of sampling. The
            agent has ``run(problem)`` and ``messages``.
        stop_reason: Tells why its agent has returned.
        succeeded: Whether a tool's message in its chat tells of success.
    """

    package: str
    make: Callable[[Episode, Any, Sampling], Any]
    stop_reason: Callable[[Any], StopReason]
    succeeded: Callable[[Message], bool]


class HarnessPlayer(ChatAgent):
    """Plays episodes by the loop of another project, each in a thread.

    The loop sends its requests through the run's own client, so that retries, time-outs, costs and
    token ids are those of the agent ``chat``. The record's chat, tools and turns are the loop's.

    Args:
        harness: The loop.
        client, model, sampling: As for `ChatAgent`; settings that are None are the loop's own.
    """

    def __init__(
        self, harness: Harness, client: ModelClient, model: str, sampling: Sampling | None = None
    ) -> None:
        super().__init__(client, model, sampling)
        self.name = harness.package
        self._harness = harness

    def describe(self) -> Mapping[str, Any]:
        """Returns the settings of the sampling, the server's address, and the loop's version."""
        return {**super().describe(), "version": version(self.name)}

    async def play(self, live: LiveEpisode) -> None:
        """Runs the loop until it returns, and has its work graded.

        Raises:
            ModelError: There is no reply, after all retries.
            SandboxError: The sandbox died.
        """
        settings = {"model": self.model, "seed": live.seed, **self._sampling.body()}
        requests = _Requests(live, self._client, settings)
        make = self._harness.make
        agent = await live.in_thread(make, live.episode, requests.client(), self._sampling)
        reason = StopReason.STOPPED
        try:
            await live.in_thread(agent.run, live.task.problem_statement)
            reason = self._harness.stop_reason(agent)
        except Exception as problem:  # noqa: BLE001 - the loop wraps the failure in its own kinds
            failure = requests.failure or problem
            if not (isinstance(failure, PromptTooLongError) and live.model_calls):
                raise failure from None
        finally:
            requests.stop()
            live.chat = requests.record(agent.messages, self._harness.succeeded)
            live.chat["toolset"] = self.name
        await live.step(Stop(f"{self.name} has ended: {reason}"))
        live.chat["turns"] += live.episode.turns
        if live.episode.stop_reason is StopReason.STOPPED:
            live.chat["stop_reason"] = reason


class _Requests:
    """The requests of a loop that runs in a thread, sent by a client of the event loop."""

    def __init__(self, live: LiveEpisode, client: ModelClient, settings: dict[str, Any]) -> None:
        self.failure: Exception | None = None
        self._live, self._client, self._settings = live, client, settings
        self._loop = asyncio.get_running_loop()
        self._pending: Future[Reply] | None = None
        self._is_stopped = False
        self._tools: list[dict[str, Any]] = []
        # The messages before each reply, the reply, and whether it has calls.
        self._replies: list[tuple[int, str, bool]] = []

    def client(self) -> Any:
        """Returns a client of the package ``openai`` whose requests come here."""
        httpx, openai = import_module("httpx"), import_module("openai")

        def answer(request: Any) -> Any:
            response = json.dumps(self._send(json.loads(request.content)), default=str)
            return httpx.Response(200, content=response, headers={"content-type": _JSON})

        return openai.OpenAI(
            base_url="http://model",
            api_key="none",
            max_retries=0,
            http_client=httpx.Client(transport=httpx.MockTransport(answer), trust_env=False),
        )

    def stop(self) -> None:
        """Refuses further requests, and gives up the one that waits."""
        self._is_stopped = True
        if self._pending is not None:
            self._pending.cancel()

    def _send(self, body: dict[str, Any]) -> Mapping[str, Any]:
        if self.failure is not None:  # LiteLLM tries again
            raise self.failure
        try:
            if self._live.episode.template is None:  # a loop may go on as if that were the model's
                raise SandboxError(self._live.episode.error)
            self._pending = asyncio.run_coroutine_threadsafe(self._ask(body), self._loop)
            if self._is_stopped:
                self._pending.cancel()
            return self._pending.result().response
        except Exception as failure:
            self.failure = failure
            raise

    async def _ask(self, body: dict[str, Any]) -> Reply:
        limits = [each["max_tokens"] for each in (body, self._settings) if each.get("max_tokens")]
        request = {**body, **self._settings, **({"max_tokens": min(limits)} if limits else {})}
        reply = await self._client.complete(request)
        self._live.count(reply.action, reply.call, reply.prompt_ids)
        self._tools = body.get("tools", [])
        has_calls = bool(reply.response["choices"][0]["message"].get("tool_calls"))
        self._replies.append((len(body["messages"]), reply.action, has_calls))
        return reply

    def record(
        self, chat: Sequence[Message], succeeded: Callable[[Message], bool]
    ) -> dict[str, Any]:
        """Returns the fields of the record that the loop's chat gives, and counts its turns.

        Args:
            chat: The loop's messages.
            succeeded: Whether a tool's message tells of success.
        """
        messages = [
            {
                "role": each["role"],
                "content": each.get("content") or "",
                **{key: each[key] for key in _KEPT if each.get(key)},
            }
            for each in chat
            if each["role"] != "exit"  # mini-swe-agent's own note
        ]
        turns = []
        encode = self._live.episode.tokenizer.encode
        ends = [start for start, _, _ in self._replies[1:]] + [len(messages)]
        replies = zip(self._replies, ends, strict=False)  # without replies there is one end
        for (start, action, has_calls), end in replies:
            calls = parse_action(action, "auto", self._tools).calls if has_calls else ()
            results = [
                ToolResult(each["content"], succeeded(each), each.get("tool_call_id", ""))
                for each in chat[start:end]
                if each["role"] == "tool"
            ]
            sampled = action if isinstance(action, Completion) else None
            turns.append(
                Turn(
                    action=str(action),
                    token_ids=tuple(encode(action) if sampled is None else sampled.token_ids),
                    exact=sampled is not None,
                    logprobs=None if sampled is None else sampled.logprobs,
                    calls=tuple(calls),
                    results=tuple(results),
                    observation=seen_text(messages[start:end]),
                )
            )
        usage = self._live.episode.usage
        usage.turns += len(turns)
        usage.tool_calls += sum(len(turn.calls) for turn in turns)
        return {"messages": tuple(messages), "turns": tuple(turns), "tools": tuple(self._tools)}
