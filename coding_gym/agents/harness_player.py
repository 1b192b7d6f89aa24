"""Plays episodes with a command-line agent in a sandbox that can connect only to the model."""

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from coding_gym.action import Stop
from coding_gym.agents.capture import CapturedRequests
from coding_gym.agents.capture_server import CaptureEndpoint
from coding_gym.agents.chat import ModelAgent
from coding_gym.agents.harness import Harness, with_layer
from coding_gym.agents.live_episode import LiveEpisode, Player, public_text
from coding_gym.calls import ExecResult
from coding_gym.episode import Limits
from coding_gym.errors import CodingGymError, InfrastructureError, InvalidArgumentError
from coding_gym.sandbox import SandboxSpec, get_backend
from coding_gym.trajectory import StopReason

_log = logging.getLogger(__name__)

_PORT = 8765
_BASE_URL = f"http://127.0.0.1:{_PORT}/v1"
_UNSUPPORTED = ("warn_tokens", "warn_tool_calls", "max_repeats", "max_format_errors")
_TIMEOUT_S = 3600.0  # time limit of an episode without `max_seconds`
_TAIL_CHARS = 4096  # characters of the harness's output in the record
_MISSING_REMEDY = (
    "; files of this machine do not exist in the sandbox; remedy: put the script into [files] of "
    "the harness and run it as $HOME/agent.py"
)
# The subshell kills the command when the endpoint closes its connection.
_SCRIPT = f"""
(
  exec 3<>/dev/tcp/127.0.0.1/{_PORT} || exit
  read -r <&3
  kill -KILL $$
) > /dev/null 2>&1 &
watch=$!
disown  # otherwise bash prints the killed command
(
{{command}}
)
code=$?
kill -KILL $watch
exit $code
"""


class HarnessError(CodingGymError, RuntimeError):
    """A harness ended before the first reply of the model; the attempt has no verdict."""


class HarnessPlayer(Player):
    """Plays episodes with a harness that runs in the episode's sandbox.

    Each episode has a separate endpoint and API key. After a limit is reached or the model fails,
    all requests get error responses; ``grace_s`` seconds after the first of these responses, the
    harness is killed. The default of ``max_seconds`` is an hour. When the harness has ended, the
    tree is graded. Chat, tools and turns of the record come from the requests.

    Args:
        harness: The harness.
        agent: The agent whose model replies to the requests of the harness.
        grace_s: Seconds between the first refused request and the kill of the harness.
    """

    def __init__(self, harness: Harness, agent: ModelAgent, *, grace_s: float = 30.0) -> None:
        self.name, self.model = harness.name, agent.model
        self._harness, self._agent, self._grace_s = harness, agent, grace_s
        self._endpoints: dict[LiveEpisode, CaptureEndpoint] = {}

    def describe(self) -> Mapping[str, Any]:
        """Returns the settings of the harness and of the agent whose model it uses."""
        return {**self._agent.describe(), "harness": self._harness.to_json()}

    def check(self, limits: Limits) -> None:
        """Raises InvalidArgumentError for limits that cannot be enforced on a harness."""
        if names := [name for name in _UNSUPPORTED if getattr(limits, name)]:
            raise InvalidArgumentError(
                f"a harness parses and runs its calls itself, so {', '.join(names)} cannot be "
                "enforced; remove these limits"
            )

    async def start(self, live: LiveEpisode) -> None:
        """Starts the episode in a sandbox that has the harness and its endpoint."""
        endpoint = CaptureEndpoint(CapturedRequests(live, self._agent.chat(live.seed)))

        def add_harness(spec: SandboxSpec) -> SandboxSpec:
            spec = with_layer(self._harness, get_backend(live.episode.config.sandbox.name), spec)
            return replace(spec, forwards={_PORT: endpoint.path})

        await endpoint.start()
        try:
            await live.in_thread(live.episode.start, add_harness)
        except BaseException:
            await endpoint.close()
            raise
        if live.episode.error:
            await endpoint.close()
        else:
            self._endpoints[live] = endpoint

    async def play(self, live: LiveEpisode) -> None:
        """Runs the harness until it ends, then grades the tree.

        Raises:
            HarnessError: The harness ended before the first reply of the model.
            ModelError: The model failed.
        """
        endpoint = self._endpoints.pop(live)
        requests = endpoint.requests
        watchdog = asyncio.ensure_future(self._close_after_refusal(endpoint))
        try:
            result = await live.in_thread(self._run, live, endpoint)
        except InfrastructureError:
            return  # the episode has recorded the failure
        finally:
            watchdog.cancel()
            await endpoint.close()
            live.chat = {**requests.record_fields(), "toolset": self.name}
        if requests.failure:
            raise requests.failure
        output = result.output[-_TAIL_CHARS:].strip() or "no output"
        outcome = public_text(f"exit code {result.exit_code}: {output}")
        if not (requests.replies or requests.is_too_long or requests.limit):
            is_missing = result.exit_code in (126, 127) or "No such file" in output
            raise HarnessError(
                f"{self.name} ended before the first reply of the model: {outcome}"
                + _MISSING_REMEDY * is_missing
            )
        reason = self._reason(requests, result)
        is_failure, text = reason is StopReason.STOPPED, f"{self.name} has ended: {reason}"
        await live.step(Stop(text if is_failure else f"{text}, {outcome}"))
        live.chat["turns"] += live.episode.turns
        if live.episode.stop_reason is StopReason.STOPPED:
            live.chat["stop_reason"] = reason
            if is_failure:
                _log.warning("%s, %s: %s", live.task.task_id, self.name, outcome)
                live.chat["error"] = outcome

    def _run(self, live: LiveEpisode, endpoint: CaptureEndpoint) -> ExecResult:
        values = {"base_url": _BASE_URL, "api_key": endpoint.api_key, "model": self.model}
        harness = self._harness.filled(values)
        command = harness.shell_command(live.task.problem_statement)
        max_seconds = live.episode.bounds.max_seconds
        timeout_s = _TIMEOUT_S if max_seconds is None else max_seconds + self._grace_s
        script = _SCRIPT.format(command=command)
        with live.episode.access() as context:
            sandbox = context.sandbox
            home = sandbox.run('printf %s "$HOME"').output
            for path, text in harness.files.items():
                sandbox.write_file(f"{home}/{path}", text.encode())
            result = sandbox.run(script, timeout_s=timeout_s, env=dict(harness.env))
        return replace(result, output=result.output.replace(endpoint.api_key, "[key]"))

    async def _close_after_refusal(self, endpoint: CaptureEndpoint) -> None:
        """Closes the endpoint, which ends the harness, ``grace_s`` s after the first refusal."""
        await endpoint.requests.refused.wait()
        await asyncio.sleep(self._grace_s)
        await endpoint.close()

    def _reason(self, requests: CapturedRequests, result: ExecResult) -> StopReason:
        """Returns the reached limit, ``STOPPED`` after a failed run, or ``SUBMITTED``."""
        if requests.limit:
            return requests.limit
        if result.timed_out:
            return StopReason.MAX_TIME
        is_failure = self._harness.is_failure(result.exit_code, result.output)
        return StopReason.STOPPED if is_failure else StopReason.SUBMITTED

    async def close(self) -> None:
        """Closes the agent whose model the harness uses; idempotent."""
        await self._agent.close()
