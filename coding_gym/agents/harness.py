"""Loops of other projects as agents of a run, with an episode's sandbox as their environment."""

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, Protocol

from coding_gym.action import Completion, Stop
from coding_gym.agents.chat import ChatAgent, Sampling
from coding_gym.agents.live_episode import LiveEpisode, PromptTooLongError
from coding_gym.agents.model_client import ModelClient
from coding_gym.agents.model_reply import Reply, content_text
from coding_gym.calls import ExecResult, ToolResult
from coding_gym.episode import Episode
from coding_gym.episode.transcript import seen_text
from coding_gym.errors import SandboxError
from coding_gym.trajectory import Message, StopReason, Turn

if TYPE_CHECKING:
    from concurrent.futures import Future

LITELLM_MODEL = "openai/model"
"""The model's name for a harness that calls LiteLLM; requests leave with the real one."""

_KEPT = ("tool_calls", "tool_call_id", "reasoning_content")  # of a message, for the record


class HarnessEnvironment:
    """Runs the commands of another project's loop in an episode's sandbox.

    A loop may turn an infrastructure failure into text for its model. The episode ends all the
    same, with ``SANDBOX_ERROR`` and without a grade.

    Args:
        episode: The episode; it was started, and whoever started it has it graded and closed.
    """

    def __init__(self, episode: Episode) -> None:
        self._episode = episode

    def run(self, command: str, **options: Any) -> ExecResult:
        """Runs a command as `Sandbox.run` does.

        Raises:
            EpisodeError: The episode has ended, was closed, or has no sandbox.
            SandboxError: The sandbox died.
            InvalidArgumentError: The command cannot be run, as with a NUL byte in it.
        """
        with self._episode.access() as context:
            return context.sandbox.run(command, **options)


@dataclass(frozen=True, slots=True, kw_only=True)
class Harness:
    """What a project's loop needs to be an agent of a run.

    Attributes:
        package: Its distribution, which is the agent's name too.
        make: Makes its agent from a started episode, an OpenAI client and the sampling. The agent
            has ``run(problem)`` and ``messages``.
        stop_reason: Returns why an agent's run has ended.
        succeeded: Whether a tool's message in its chat reports success.
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
        """Runs the loop until it returns, and has its work graded."""
        settings = {"model": self.model, "seed": live.seed, **self._sampling.body()}
        requests = HarnessRequests(live, self._client, settings)
        make = self._harness.make
        agent = await live.in_thread(make, live.episode, requests.client(), self._sampling)
        reason = StopReason.STOPPED
        try:
            await live.in_thread(agent.run, live.task.problem_statement)
            reason = self._harness.stop_reason(agent)
        except Exception as problem:  # noqa: BLE001 - the loop wraps the failure in its own kinds
            failure = requests.failure or problem
            if not isinstance(failure, PromptTooLongError):
                raise failure from None
        finally:
            requests.stop()
            live.chat = requests.record(getattr(agent, "messages", ()), self._harness.succeeded)
            live.chat["toolset"] = self.name
        await live.step(Stop(f"{self.name} has ended: {reason}"))
        live.chat["turns"] += live.episode.turns
        if live.episode.stop_reason is StopReason.STOPPED:
            live.chat["stop_reason"] = reason


class CompletesChats(Protocol):
    """Asks a model for replies, as `ModelClient` does."""

    async def complete(self, request: Mapping[str, Any]) -> Reply:
        """Returns the reply to a request in the form of OpenAI's chat completions."""
        ...


class HarnessRequests:
    """The requests of a loop that runs in a thread, sent by a client of the event loop.

    Args:
        live: The episode.
        client: Sends the requests.
        settings: Fields of every request, which replace the loop's own; of two bounds on the
            tokens of a reply the smaller one counts.
        on_reply: Called with every request, as it was sent, and its reply.

    Attributes:
        failure: Why there was no reply to a request; no further one is sent, except after a prompt
            that was too long.
        chat: The messages of the last request that has a reply, and that reply.
    """

    def __init__(
        self,
        live: LiveEpisode,
        client: CompletesChats,
        settings: Mapping[str, Any],
        on_reply: Callable[[dict[str, Any], Reply], None] = lambda *_: None,
    ) -> None:
        self.failure: Exception | None = None
        self.chat: list[Message] = []
        self._live, self._client, self._settings = live, client, settings
        self._on_reply = on_reply
        self._loop = asyncio.get_running_loop()
        self._pending: Future[Reply] | None = None
        self._is_stopped = False
        self._tools: list[dict[str, Any]] = []
        self._replies: list[tuple[int, Reply]] = []  # with the number of messages before each

    def client(self) -> Any:
        """Returns a client of the package ``openai`` whose requests come here."""
        httpx, openai = import_module("httpx"), import_module("openai")

        def answer(request: Any) -> Any:
            reply = self._send(json.loads(request.content))
            text = json.dumps(reply.response, default=str)  # infinite log-probabilities pass
            return httpx.Response(200, content=text, headers={"content-type": "application/json"})

        return openai.OpenAI(
            base_url="http://model",
            api_key="none",
            max_retries=0,
            http_client=httpx.Client(transport=httpx.MockTransport(answer), trust_env=False),
        )

    def stop(self) -> None:
        """Refuses further requests, and cancels the one that waits."""
        self._is_stopped = True
        if self._pending is not None:
            self._pending.cancel()

    def _send(self, body: dict[str, Any]) -> Reply:
        self._pending = asyncio.run_coroutine_threadsafe(self.ask(body), self._loop)
        if self._is_stopped:
            self._pending.cancel()
        return self._pending.result()

    async def ask(self, body: dict[str, Any]) -> Reply:
        """Returns the reply to a request of the loop, and counts it as a turn.

        Raises:
            ModelError: There is no reply to this or to an earlier request.
            SandboxError: The episode has no sandbox.
        """
        if self.failure is not None and not isinstance(self.failure, PromptTooLongError):
            raise self.failure  # LiteLLM tries again
        limits = [each["max_tokens"] for each in (body, self._settings) if each.get("max_tokens")]
        request = {**body, **self._settings, **({"max_tokens": min(limits)} if limits else {})}
        try:
            if self._live.episode.template is None:  # the loop may take that for a failed command
                raise SandboxError(self._live.episode.error)
            reply = await self._client.complete(request)
        except Exception as failure:
            self.failure = failure
            raise
        if isinstance(self.failure, PromptTooLongError):  # this one was shorter
            self.failure = None
        self._live.count(reply.action, reply.call, reply.prompt_ids)
        self._tools = body.get("tools") or []
        self._replies.append((len(body["messages"]), reply))
        self.chat = [*body["messages"], reply.response["choices"][0]["message"]]
        self._on_reply(request, reply)
        return reply

    def record(
        self, chat: Sequence[Message], succeeded: Callable[[Message], bool]
    ) -> dict[str, Any]:
        """Returns the fields of the record that the loop's chat gives, and counts its turns."""
        messages = [
            {
                "role": each["role"],
                "content": content_text(each.get("content")),
                **{key: each[key] for key in _KEPT if each.get(key)},
            }
            for each in chat
            if each["role"] != "exit"  # mini-swe-agent's own note
        ]
        ends = [start for start, _ in self._replies[1:]] + [len(chat)]
        turns = [
            self._turn(reply, chat[start:end], succeeded)
            for (start, reply), end in zip(self._replies, ends, strict=False)
        ]
        usage = self._live.episode.usage
        usage.turns += len(turns)
        usage.tool_calls += sum(len(turn.calls) for turn in turns)
        return {"messages": tuple(messages), "turns": tuple(turns), "tools": tuple(self._tools)}

    def _turn(
        self, reply: Reply, chat: Sequence[Message], succeeded: Callable[[Message], bool]
    ) -> Turn:
        action, encode = reply.action, self._live.episode.tokenizer.encode
        if not isinstance(action, Completion):
            action = Completion(action, encode(action), calls=())
        is_sampled = action is reply.action and bool(action.token_ids)
        return Turn(
            action=str(action),
            token_ids=tuple(action.token_ids or encode(action.written)),
            exact=is_sampled,
            logprobs=action.logprobs,
            calls=action.calls or (),
            carries_calls=bool(action.calls),
            results=tuple(
                ToolResult(each["content"], succeeded(each), each.get("tool_call_id", ""))
                for each in chat
                if each["role"] == "tool"
            ),
            observation=seen_text(chat),
        )
