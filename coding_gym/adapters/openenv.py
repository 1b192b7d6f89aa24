"""OpenEnv: a server of repair episodes over WebSockets. Needs the extra ``openenv``.

    uvicorn.run(make_app(max_concurrent_envs=16, tasks="bundled", max_turns=30), port=8000)

    with RepairClient(base_url="http://127.0.0.1:8000", message_timeout_s=600).sync() as client:
        result = client.reset(task_id="cronwise-working-days")
        result = client.step(RepairAction(text='{"name": "shell", "arguments": {"cmd": "ls"}}'))

``coding-gym serve`` starts the same server. Each connection has a separate environment, which is
closed when the connection ends. ``message_timeout_s`` must exceed the time of a grade, which is
part of the last step.
"""

from functools import partial
from typing import Any

from coding_gym.action import Stop
from coding_gym.adapters.session import Session, task_options
from coding_gym.optional import missing_extra

try:
    from openenv.core.client_types import StepResult
    from openenv.core.env_client import EnvClient
    from openenv.core.env_server import Action, Environment, Observation, State, create_fastapi_app
    from openenv.core.env_server.types import ConcurrencyConfig
except ImportError as error:
    raise missing_extra("OpenEnv", "openenv") from error

# Sessions opened by POST /mcp count towards the maximum; this timeout closes abandoned sessions.
_DETACHED_TIMEOUT_S = 600.0


class RepairAction(Action):
    """One reply of the policy.

    Attributes:
        text: The reply, with tool calls in the environment's tool format.
        stop: The reason to end and grade the episode without playing ``text``, or "".
    """

    text: str = ""
    stop: str = ""


class RepairObservation(Observation):
    """The result of one action; ``done`` and ``reward`` are fields of OpenEnv's class.

    The reward is None at reset, and after an infrastructure failure.

    Attributes:
        text: The new text for the policy.
        messages: The new chat messages for the policy, in OpenAI's form.
        task_id: The task.
        turn: The number of turns so far.
        tool_calls: The number of tool calls so far.
        truncated: Whether a limit or an infrastructure failure ended the episode.
        stop_reason: The reason why the episode ended; None before the end.
        resolved: Whether all hidden tests pass; None before the end.
        error: The infrastructure failure, or "".
        mask_sample: Whether training must exclude the episode: True after infrastructure failures.
    """

    text: str = ""
    messages: list[dict[str, Any]] = []  # noqa: RUF012 - pydantic copies the list
    task_id: str = ""
    turn: int = 0
    tool_calls: int = 0
    truncated: bool = False
    stop_reason: str | None = None
    resolved: bool | None = None
    error: str = ""
    mask_sample: bool = False


class RepairState(State):
    """The state of a connection's episode, and the tools of the environment.

    Attributes:
        task_id: The task; "" before the first reset.
        done: Whether the episode has ended.
        toolset: The name of the toolset.
        tools: The tools of the toolset, as OpenAI function schemas.
    """

    task_id: str = ""
    done: bool = False
    toolset: str = ""
    tools: list[dict[str, Any]] = []  # noqa: RUF012 - pydantic copies the list


class RepairEnvironment(Environment[RepairAction, RepairObservation, RepairState]):
    """Plays ``CodingRepair-v0`` for one connection.

    Args:
        **session: Arguments of `coding_gym.adapters.session.Session`.
    """

    SUPPORTS_CONCURRENT_SESSIONS = True

    def __init__(self, **session: Any) -> None:
        super().__init__()
        self._session = Session(**session)
        self._episode_id: str | None = None

    def reset(
        self, seed: int | None = None, episode_id: str | None = None, **options: Any
    ) -> RepairObservation:
        """Starts an episode.

        Args:
            seed: Seed of the sampler, which chooses the task if no option names a task.
            episode_id: The id of the episode in the state.
            **options: ``task_id``, or ``task`` (a row).

        Raises:
            InvalidArgumentError, UnknownTaskError, InvalidTaskError: An option cannot be used.
        """
        self._episode_id = episode_id
        self._session.start(seed=seed, **(task_options(options) if options else {}))
        return self._observation()

    def step(self, action: RepairAction, **_: Any) -> RepairObservation:
        """Plays one action; ``timeout_s`` is ignored, because the environment has limits.

        Raises:
            EpisodeError: No episode is running, which is always so in stateless HTTP calls.
        """
        self._session.step(Stop(action.stop) if action.stop else action.text)
        return self._observation(self._session.reward)

    @property
    def state(self) -> RepairState:
        """The state of the episode, and the tools."""
        toolset, info = self._session.unwrapped.toolset, self._session.info
        return RepairState(
            episode_id=self._episode_id,
            step_count=info.get("turn", 0),
            task_id=info.get("task_id", ""),
            done=self._session.ended,
            toolset=toolset.name,
            tools=list(toolset.schemas),
        )

    def close(self) -> None:
        """Frees the sandbox; idempotent."""
        self._session.close()

    def _observation(self, reward: float | None = None) -> RepairObservation:
        session = self._session
        return RepairObservation(
            **session.summary(),
            done=session.ended,
            reward=reward,
            text=session.text,
            messages=session.messages,
            truncated=session.ended and not session.terminated,
        )


class RepairClient(EnvClient[RepairAction, RepairObservation, RepairState]):
    """One connection to a server; ``sync()`` returns a client whose methods need no ``await``."""

    def _step_payload(self, action: RepairAction) -> dict[str, Any]:
        return dict(action.model_dump(exclude={"metadata"}))

    def _parse_result(self, payload: dict[str, Any]) -> StepResult[RepairObservation]:
        outcome = {"reward": payload.get("reward"), "done": payload.get("done", False)}
        return StepResult(RepairObservation(**payload["observation"], **outcome), **outcome)

    def _parse_state(self, payload: dict[str, Any]) -> RepairState:
        return RepairState(**payload)


def make_app(*, max_concurrent_envs: int = 8, **session: Any) -> Any:
    """Returns a FastAPI application that serves episodes at ``/ws``.

    Args:
        max_concurrent_envs: Maximum number of simultaneous connections.
        **session: Arguments of `coding_gym.adapters.session.Session`: ``wrappers``,
            ``control_tokens``, and the arguments of ``CodingRepair-v0``.

    Raises:
        InvalidArgumentError, UnknownNameError, UnknownTaskError, InvalidTaskError: An argument
            cannot be used.
    """
    RepairEnvironment(**session).close()  # raises errors now, not at the first connection
    return create_fastapi_app(
        partial(RepairEnvironment, **session),
        RepairAction,
        RepairObservation,
        concurrency_config=ConcurrencyConfig(
            max_concurrent_envs=max_concurrent_envs, session_timeout=_DETACHED_TIMEOUT_S
        ),
        state_cls=RepairState,
    )
