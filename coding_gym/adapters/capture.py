"""An OpenAI-compatible endpoint for each episode, which records what any agent samples.

    def play(episode, endpoint):
        agent = Agent("openai/model", endpoint.base_url, env=NanoEnvironment(episode))
        agent.llm_kwargs["api_key"] = endpoint.api_key
        agent.run(episode.task.problem_statement)

    player = CapturePlayer(play, OpenAIClient("http://127.0.0.1:8000/v1"), model="my-model")
    evaluate("runs/any", player, tasks="bundled")

The agent is unmodified and talks to Chat Completions or Responses API. Requests go on to the model,
with the run's sampling, and ask for token ids and log-probabilities. The record of the episode has
these ids; `segments` gives them as samples for training.
"""

import asyncio
import logging
import traceback
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from coding_gym.action import Stop
from coding_gym.adapters.capture_server import CaptureServer, Endpoint, LimitedRequests
from coding_gym.agents.chat import Sampling
from coding_gym.agents.harness import HarnessRequests
from coding_gym.agents.hf import HuggingFaceAgent
from coding_gym.agents.live_episode import LiveEpisode, Player, PromptTooLongError, public_text
from coding_gym.agents.local_chat import LocalChat
from coding_gym.agents.model_client import ModelClient
from coding_gym.agents.model_reply import Reply, content_text
from coding_gym.episode import Episode
from coding_gym.errors import InvalidArgumentError
from coding_gym.optional import import_extra
from coding_gym.trajectory import StopReason, Trajectory

_log = logging.getLogger(__name__)

HarnessFunction = Callable[[Episode, Endpoint], object]
"""Plays a started episode to its end, in a thread; asks the model at the endpoint."""


def segments(trajectory: Trajectory) -> list[dict[str, Any]]:
    """Returns an episode as samples of token ids; most episodes are one.

    A prompt that begins with all ids of a segment so far continues it: the ids between the replies
    have mask 0. Any other prompt begins a segment, as after an agent summarised its history.
    Replies whose ids or prompt ids the server did not give are in no segment.

    Returns:
        For each segment ``prompt_ids``, ``completion_ids``, ``env_mask`` (1 on ids that were
        sampled) and ``logprobs`` (0.0 where the mask is 0; None where a sampled id has none), as
        in `Trajectory.to_training_example`.
    """
    samples: list[dict[str, Any]] = []
    history: list[int] = []
    for turn in trajectory.turns:
        call = turn.model_call
        if call is None or not turn.exact or not (call.prefix_length or call.prompt_ids):
            continue
        prompt = [*history[: call.prefix_length], *call.prompt_ids]
        history = [*prompt, *turn.token_ids]
        for sample in reversed(samples):
            length = len(sample["prompt_ids"]) + len(sample["completion_ids"])
            if prompt[:length] == [*sample["prompt_ids"], *sample["completion_ids"]]:
                break
        else:
            length = len(prompt)
            sample = {"prompt_ids": prompt, "completion_ids": [], "env_mask": [], "logprobs": []}
            samples.append(sample)
        between, ids = prompt[length:], turn.token_ids
        sample["completion_ids"] += [*between, *ids]
        sample["env_mask"] += [0] * len(between) + [1] * len(ids)
        if turn.logprobs is None or sample["logprobs"] is None:
            sample["logprobs"] = None
        else:
            sample["logprobs"] += [0.0] * len(between) + list(turn.logprobs)
    return samples


class CapturePlayer(Player):
    """Plays episodes by any agent that asks an OpenAI-compatible server.

    Every episode has an `Endpoint`; the agent runs in a thread until it returns, and the tree that
    it leaves is graded. Where it raises after a reply, as at the episode's ``max_turns``,
    ``max_tokens`` (prompt and reply of the last request) or ``max_seconds``, which the endpoint
    keeps, the tree is graded too, and the record's ``error`` has the traceback of a failure that
    no limit explains.

    Args:
        harness: Plays one episode. It may start a process or a container that asks the endpoint.
        client: A client of the served model, or the agent ``hf`` with the model of this process.
        model: The model's name, as the server knows it; not for ``hf``.
        sampling: How the model samples; replaces the agent's own settings. ``hf`` has its own.
        name: The agent's name in records; by default the function's.
        on_call: Called with every request, in the event loop: the episode, the JSON that the model
            was asked with (messages, tools, sampling), and the reply with its ids.

    Raises:
        InvalidArgumentError: The model is named twice, or not at all.
        MissingDependencyError: FastAPI or uvicorn is not installed.
    """

    def __init__(
        self,
        harness: HarnessFunction,
        client: ModelClient | HuggingFaceAgent,
        *,
        model: str = "",
        sampling: Sampling | None = None,
        name: str = "",
        on_call: Callable[[LiveEpisode, Mapping[str, Any], Reply], None] = lambda *_: None,
    ) -> None:
        is_local = isinstance(client, HuggingFaceAgent)
        if is_local == bool(model) or (is_local and sampling is not None):
            raise InvalidArgumentError(
                "give model, and sampling, with a client of a server; the agent 'hf' has its own, "
                f"got model={model!r} and {type(client).__name__}"
            )
        self.model = client.model if isinstance(client, HuggingFaceAgent) else model
        self.name = name or getattr(harness, "__name__", type(harness).__name__)
        self._harness, self._client = harness, client
        self._sampling = sampling or Sampling()
        self._on_call = on_call
        self._has_warned = False
        self._server: CaptureServer | None = None
        import_extra("uvicorn", "serve")

    def describe(self) -> Mapping[str, Any]:
        """Returns the settings of the sampling, and the model's address or device."""
        if isinstance(self._client, HuggingFaceAgent):
            return self._client.describe()
        return {"base_url": self._client.base_url, "sampling": self._sampling.body()}

    async def play(self, live: LiveEpisode) -> None:
        """Runs the agent until it returns, and has its work graded."""
        if self._server is None:
            self._server = CaptureServer(self.model)
        limited = self._limited(live)
        requests, problem, error = limited.requests, None, ""
        try:
            with self._server.open(limited) as endpoint:
                await live.in_thread(self._harness, live.episode, endpoint)
        except Exception as failure:  # noqa: BLE001 - agents wrap failures in their own kinds
            problem, error = failure, traceback.format_exc(limit=-3)
        finally:
            requests.stop()
            chat = [{**m, "content": content_text(m.get("content"))} for m in requests.chat]
            live.chat = {**requests.record(chat, lambda _: True), "toolset": self.name}
        if requests.failure and not isinstance(requests.failure, PromptTooLongError):
            raise requests.failure
        is_ours = live.episode.error or requests.failure or limited.limit
        if problem is not None and not (requests.chat or is_ours):
            raise problem  # the agent never got to the model: no verdict on the policy
        reason = limited.limit or StopReason.STOPPED
        await live.step(Stop(f"{self.name} has ended: {reason}"))
        live.chat["turns"] += live.episode.turns
        if live.episode.stop_reason is StopReason.STOPPED:
            live.chat["stop_reason"] = reason
        if problem is not None and not limited.limit and not live.episode.error:
            _log.warning("%s, %s: %r", live.task.task_id, self.name, problem)
            live.chat["error"] = public_text(error)

    def _limited(self, live: LiveEpisode) -> LimitedRequests:
        settings: dict[str, Any] = {"model": self.model, "seed": live.seed, **self._sampling.body()}
        shared = self._client
        client = LocalChat(shared) if isinstance(shared, HuggingFaceAgent) else shared
        return LimitedRequests(
            live, HarnessRequests(live, client, settings, partial(self._on_reply, live))
        )

    def _on_reply(self, live: LiveEpisode, request: Mapping[str, Any], reply: Reply) -> None:
        sampled = getattr(reply.action, "token_ids", ())
        ids = {"replies": bool(sampled), "prompts": bool(reply.prompt_ids)}
        if not (all(ids.values()) or self._has_warned):
            self._has_warned = True
            _log.warning(
                "the server of %r gives no token ids of %s: its replies are in no sample of "
                "`segments`; vLLM and SGLang give the ids of both",
                self.model,
                " and ".join(name for name, has_some in ids.items() if not has_some),
            )
        self._on_call(live, request, reply)

    async def close(self) -> None:
        """Stops the server and closes the client; idempotent."""
        server, self._server = self._server, None
        if server is not None:
            await asyncio.to_thread(server.close)
        await self._client.close()
