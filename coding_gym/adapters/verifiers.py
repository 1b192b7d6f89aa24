"""verifiers 0.4: a taskset and an in-process harness. Needs the extra ``verifiers``.

    config = vf.AgentConfig(
        harness=RepairHarnessConfig(), runtime=vf.SubprocessConfig(), model="…", client=…
    )
    async with vf.Agent(config) as agent:
        for task in RepairTaskset(RepairTasksetConfig(split="train")):
            trace = await agent.run(task)

The task opens the sandbox before the harness starts. When the harness has ended for any reason, the
task grades the tree. The harness sends its requests to the endpoint of verifiers.
"""

import asyncio
from collections.abc import Iterator
from typing import Any

from coding_gym.adapters.session import Session, play_chat, refuse_sampler
from coding_gym.agents.model_reply import read_reply
from coding_gym.episode import EpisodeConfig
from coding_gym.episode.config import argument_names
from coding_gym.optional import missing_extra
from coding_gym.task import Task

try:
    import verifiers.v1 as vf
    from openai import APIError, AsyncOpenAI
    from pydantic import Field
    from verifiers.v1.configs.harness import HarnessConfig
    from verifiers.v1.runtimes import ProgramResult, Runtime
except ImportError as error:
    raise missing_extra("verifiers", "verifiers") from error

PLUGIN = "coding-gym-verifiers"  # the id of taskset and harness
INFO = "coding_repair"  # the key of ``Session.summary`` in ``trace.info``


class RepairState(vf.State):
    """The state of a rollout; the `Session` of the episode is not part of records."""

    session: Any = None


class RepairTaskConfig(vf.TaskConfig):
    """Settings of episodes.

    Attributes:
        env: Arguments of `coding_gym.adapters.session.Session`: ``wrappers``, ``control_tokens``,
            and those of ``CodingRepair-v0`` except ``tasks``, ``task_ids``, ``split``, ``sampler``.
    """

    env: dict[str, Any] = Field(default_factory=dict)


class RepairTasksetConfig(vf.TasksetConfig):
    """The choice of tasks.

    Attributes:
        task: Settings of the episodes.
        tasks: As for ``CodingRepair-v0``.
        task_ids: The ids of the tasks to use; all tasks by default.
        split: The split of the tasks to use.
    """

    task: RepairTaskConfig = RepairTaskConfig()
    tasks: str | list[dict[str, Any]] = "bundled"
    task_ids: list[str] | None = None
    split: str | None = None


class RepairTask(vf.Task[vf.TaskData, RepairState, RepairTaskConfig]):
    """One bug to repair; its reward is the reward of the episode.

    Args:
        data, config: As for every task of verifiers.
        source: The task; None for a bundled task with the id in ``data``.
    """

    def __init__(
        self, data: vf.TaskData, config: RepairTaskConfig | None = None, source: Task | None = None
    ) -> None:
        super().__init__(data, config)
        self.source = source

    @property
    def key(self) -> str:
        """The task's id, the same in every run."""
        return str(self.data.id)

    async def setup(self, trace: vf.Trace, runtime: Runtime) -> None:  # noqa: ARG002 - by name
        """Opens the sandbox.

        Raises:
            verifiers.v1.SandboxError: The sandbox could not be opened; the rollout has an error
                and no reward.
        """
        tasks = {} if self.source is None else {"tasks": [self.source]}
        session = Session(**{**tasks, **self.config.env})
        trace.state.session = session
        await asyncio.to_thread(session.start, task_id=self.key)
        _raise_failure(session)

    async def finalize(self, trace: vf.Trace, runtime: Runtime) -> None:  # noqa: ARG002 - by name
        """Ends the episode if it is running, and records its result in ``trace.info``.

        Raises:
            verifiers.v1.SandboxError: An infrastructure failure; the rollout has an error and no
                reward.
        """
        session = trace.state.session
        await asyncio.to_thread(session.finish, trace.stop_condition or "the harness has ended")
        trace.info[INFO] = session.summary()
        _raise_failure(session)
        trace.info[INFO]["reward"] = session.total_reward
        trace.info[INFO]["metrics"] = session.metrics()

    @vf.reward
    async def repair(self, trace: vf.Trace) -> float:
        """Returns the sum of the episode's rewards: 1.0 if resolved, plus rewards of wrappers."""
        return float(trace.info[INFO]["reward"])

    @vf.metric
    async def episode(self, trace: vf.Trace) -> dict[str, float]:
        """Returns the values of `outcome_metrics`, ``num_actions`` and ``num_tool_calls``."""
        info = trace.info[INFO]
        counts = {"num_actions": info["turn"], "num_tool_calls": info["tool_calls"]}
        return {**info["metrics"], **counts}


class RepairTaskset(vf.Taskset[RepairTask, RepairTasksetConfig]):
    """The tasks of a source of coding_gym."""

    def load(self) -> Iterator[RepairTask]:
        """Yields the tasks.

        Raises:
            InvalidArgumentError, UnknownTaskError, InvalidTaskError, UnknownNameError: The
                configuration cannot be used.
        """
        config, env = self.config, self.config.task.env
        refuse_sampler(env)
        selection = {"tasks": config.tasks, "task_ids": config.task_ids, "split": config.split}
        settings = {name: env[name] for name in argument_names() if name in env}
        episode = EpisodeConfig.from_config(**{**settings, **selection})
        for task in episode.tasks:
            name, prompt, system = task.task_id, task.problem_statement, episode.system_prompt
            data = vf.TaskData(id=name, name=name, prompt=prompt, system_prompt=system)
            yield RepairTask(data, config.task, task)


class RepairHarnessConfig(HarnessConfig):
    """A configuration without settings: the task sets limits, and the agent sets the sampling."""

    id: str = PLUGIN


class RepairHarness(vf.Harness[RepairHarnessConfig]):
    """Requests actions from the model until the episode has ended; for `RepairTask` only."""

    APPENDS_SYSTEM_PROMPT = True
    EXECUTES_CODE = False  # code runs in the sandbox of the episode
    NEEDS_CONTAINER = False

    async def launch(
        self,
        ctx: vf.ModelContext,
        trace: vf.Trace,
        runtime: Runtime,  # noqa: ARG002 - the episode has a sandbox
        endpoint: str,
        secret: str,
        mcp_urls: dict[str, str],  # noqa: ARG002 - the environment has the tools
        data: vf.TaskData,
    ) -> ProgramResult:
        """Plays the episode until the end, or until an error response of verifiers."""
        async with AsyncOpenAI(base_url=endpoint, api_key=secret, timeout=None) as client:

            async def ask(request: dict[str, Any]) -> str:
                request["messages"][0]["content"] = data.system_prompt
                response = await client.chat.completions.create(model=ctx.model, **request)
                return read_reply(response.model_dump())

            try:
                await play_chat(trace.state.session, ask)
            except APIError as problem:
                return ProgramResult(1, "", str(problem))
        return ProgramResult(0, "", "")

    async def cleanup(self, trace: vf.Trace, runtime: Runtime) -> None:  # noqa: ARG002 - by name
        """Frees the sandbox; idempotent."""
        session, trace.state.session = trace.state.session, None
        if session is not None:
            await asyncio.to_thread(session.close)


def _raise_failure(session: Session) -> None:
    if session.info["mask_sample"]:
        raise vf.SandboxError(session.info["error"])
