"""NeMo Gym 0.4: a Gymnasium-style resources server. The module needs the extra ``nemo-gym``.

    # resources_servers/coding_repair/app.py
    from coding_gym.adapters.nemo_gym import RepairServer

    if __name__ == "__main__":
        RepairServer.run_webserver()

Use NeMo Gym's ``gymnasium_agent``. The server accepts the rows and the parameters of NeMo
Gym's mini-SWE-agent environment; a row can also name a task.
"""

import asyncio
import time
from dataclasses import dataclass, field, replace
from typing import Any

from coding_gym.action import Completion
from coding_gym.adapters.session import Session
from coding_gym.agents.scripted import gold
from coding_gym.episode import EpisodeConfig
from coding_gym.errors import InvalidArgumentError
from coding_gym.optional import missing_extra
from coding_gym.task import Task
from coding_gym.tools import get_toolset
from coding_gym.tools.formats import explains_format, message_calls

try:
    from nemo_gym.base_resources_server import BaseResourcesServerConfig
    from nemo_gym.openai_utils import NeMoGymResponse
    from pydantic import Field
    from resources_servers.gymnasium import GymnasiumServer, extract_text
except ImportError as error:
    raise missing_extra("NeMo Gym", "nemo-gym", " with Python 3.12 or newer") from error

_TOOLSET = "bash"  # as in mini-SWE-agent


class RepairServerConfig(BaseResourcesServerConfig):
    """Parameters of NeMo Gym's mini-SWE-agent environment, plus ``idle_timeout`` and ``episode``.

    Attributes:
        env: A sandbox backend of this package; ``"singularity"`` means ``"namespace"``.
        cache_dir_template: The image of each task, with the placeholder ``{instance_id}``.
        run_golden: Whether the gold patch replaces the model's replies, for validation.
        step_timeout: Time limit of a command in seconds.
        eval_timeout: Time limit of a run of the hidden tests in seconds.
        step_limit: Maximum number of replies of an episode.
        collapse_limit: Maximum number of identical commands in a row; the last gets a warning.
        idle_timeout: A reset closes the sessions that had no step for this many seconds.
        episode: Arguments of `coding_gym.adapters.session.Session` that override the other fields.
    """

    env: str = "auto"
    cache_dir_template: str | None = None
    run_golden: bool = False
    step_timeout: float = 600.0
    eval_timeout: float = 1800.0
    step_limit: int = 250
    collapse_limit: int = 3
    idle_timeout: float = 3600.0
    episode: dict[str, Any] = Field(default_factory=dict)

    def settings(self) -> dict[str, Any]:
        """Returns the arguments of `Session`."""
        return {
            "toolset": _TOOLSET,
            "sandbox": "namespace" if self.env == "singularity" else self.env,
            "command_timeout_s": self.step_timeout,
            "max_turns": self.step_limit,
            "limits": {"max_repeats": self.collapse_limit, "max_format_errors": 3},
            **self.episode,
        }


@dataclass
class _Connection:
    """A session of NeMo Gym; a step in progress holds the lock."""

    session: Session
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    used_at: float = field(default_factory=time.monotonic)  # end of the last step


class RepairServer(GymnasiumServer):
    """Serves repair episodes, one for each session."""

    config: RepairServerConfig

    def model_post_init(self, context: Any, /) -> None:
        """Checks the configuration."""
        super().model_post_init(context)
        Session(**self.config.settings()).close()

    async def reset(
        self, metadata: dict[str, Any], session_id: str | None = None
    ) -> tuple[str | None, dict[str, Any]]:
        """Starts the episode of a row and returns the issue.

        Raises:
            InvalidTaskError: The row is malformed.
        """
        await self.close_session(session_id)
        oldest = time.monotonic() - self.config.idle_timeout
        for key, connection in [*self.session_state.items()]:
            if connection.used_at < oldest and not connection.lock.locked():
                await self.close_session(key)  # agents leave sessions open at `max_steps`
        session = Session(**self.config.settings())
        await asyncio.to_thread(session.start, task=self._task(session, metadata))
        self.session_state[session_id] = _Connection(session)
        return session.text, session.summary()

    async def step(
        self,
        action: NeMoGymResponse,
        metadata: dict[str, Any],  # noqa: ARG002 - the reset has read the row
        session_id: str | None = None,
    ) -> tuple[str | None, float, bool, bool, dict[str, Any]]:
        """Plays a reply of the model; ``info["tool_outputs"]`` has the results of its calls.

        Steps of one session run one after another. After an infrastructure failure the reward is
        0.0 and ``info["mask_sample"]`` is True.

        Raises:
            InvalidArgumentError: The session does not exist, or is closed.
        """
        connection = self.session_state.get(session_id)
        if connection is None:
            raise InvalidArgumentError(f"no session {session_id!r}; call /reset first")
        session = connection.session
        async with connection.lock:
            if self.session_state.get(session_id) is not connection:
                raise InvalidArgumentError(f"session {session_id!r} was closed; call /reset first")
            if not session.ended:  # ended at reset if no sandbox could be opened
                play = asyncio.ensure_future(asyncio.to_thread(self._play, session, action))
                try:
                    await asyncio.shield(play)
                finally:
                    await asyncio.wait([play])  # a cancelled request does not end the thread
                    connection.used_at = time.monotonic()
        by_id = {message.get("tool_call_id"): message["content"] for message in session.messages}
        calls = [item.call_id for item in action.output if item.type == "function_call"]
        outputs = [{"call_id": call, "output": by_id.get(call, "")} for call in calls]
        texts = [m["content"] for m in session.messages if m.get("tool_call_id") not in calls]
        info = {**session.summary(), "tool_outputs": outputs}
        truncated = session.ended and not session.terminated
        text = "\n".join(texts) or None  # notices, and results of calls in text formats
        return text, session.reward or 0.0, session.terminated, truncated, info

    async def close_session(self, session_id: str | None) -> None:
        """Frees the session's sandbox; idempotent."""
        connection = self.session_state.pop(session_id, None)
        if connection is not None:
            await asyncio.to_thread(connection.session.close)

    def _play(self, session: Session, action: NeMoGymResponse) -> None:
        if self.config.run_golden:
            for reply in gold(session.unwrapped.episode):
                session.step(reply)
                if session.ended:  # a limit has closed the sandbox
                    break
            session.finish("the gold patch is applied")
            return
        text = extract_text(action)
        calls = [
            {"id": item.call_id, "function": {"name": item.name, "arguments": item.arguments}}
            for item in action.output
            if item.type == "function_call"
        ]
        parsed = message_calls({"tool_calls": calls}) or None
        details = action.incomplete_details
        is_cut = details is not None and details.reason == "max_output_tokens"
        is_text = parsed is None and not is_cut
        session.step(text if is_text else Completion(text, calls=parsed, is_cut=is_cut))

    def _task(self, session: Session, row: dict[str, Any]) -> Task:
        """Returns the server's task that the row names, or a task made from the row's fields."""
        config = session.unwrapped.config
        name = row.get("task_id") or row.get("instance_id")
        matches = (task for task in config.tasks if task.task_id == name)
        task = next(matches, None) or config.task_of({"responses_create_params": {}, **row})
        image = (self.config.cache_dir_template or "").format(instance_id=task.task_id)
        return replace(task, grading_timeout_s=self.config.eval_timeout, image=image or task.image)


def rows(
    tasks: Any = "bundled", *, agent: str = "repair_agent", **episode: Any
) -> list[dict[str, Any]]:
    """Returns NeMo Gym's rows, one per task: a request with prompt and tools, and ``task_id``.

    Args:
        tasks: As for ``CodingRepair-v0``.
        agent: The name of the ``gymnasium_agent`` in the configuration.
        **episode: Further arguments of `EpisodeConfig.from_config`, such as ``split``; ``toolset``,
            ``tool_format`` and ``sandbox`` change the prompt and must equal the server's.

    Raises:
        InvalidArgumentError, UnknownTaskError, InvalidTaskError, UnknownNameError: An argument
            cannot be used.
    """
    config = EpisodeConfig.from_config(tasks=tasks, **{"toolset": _TOOLSET, **episode})
    request: dict[str, Any] = {"input": [{"role": "system", "content": config.system_prompt}]}
    if not explains_format(config.tool_format):
        functions = [schema["function"] for schema in get_toolset(config.toolset).schemas]
        request["tools"] = [{"type": "function", "strict": False, **f} for f in functions]
    reference = {"type": "responses_api_agents", "name": agent}
    return [
        {"responses_create_params": request, "agent_ref": reference, "task_id": task.task_id}
        for task in config.tasks
    ]
