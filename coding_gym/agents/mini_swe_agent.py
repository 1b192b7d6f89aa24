"""mini-swe-agent: its own loop as an agent of runs, and an episode as its agent's environment.

    env = MiniSweEnvironment(episode)
    DefaultAgent(LitellmModel(model_name="openai/…"), env, **config["agent"]).run("…")

`MiniSweEnvironment` has the methods of the ``Environment`` protocol of mini-swe-agent 2. Commands
run in ``bash``, one process each. Prompts describe the sandbox only: that project's local
environment gives them every environment variable of the host, keys included.
"""

import os
from collections.abc import Mapping
from functools import partial
from importlib import import_module
from typing import Any

from coding_gym.agents.chat import Sampling
from coding_gym.agents.harness import LITELLM_MODEL, Harness, HarnessEnvironment
from coding_gym.agents.model_client import quiet_litellm
from coding_gym.arguments import positive_seconds
from coding_gym.episode import Episode
from coding_gym.errors import InvalidArgumentError
from coding_gym.optional import import_optional
from coding_gym.tools.bash import SUBMIT_LINE
from coding_gym.trajectory import Message, StopReason

_UNAME = ("system", "node", "release", "version", "machine")
_ASK_UNAME = "for option in -s -n -r -v -m; do uname $option; done"
_STOP_REASONS = {
    "Submitted": StopReason.SUBMITTED,
    "LimitsExceeded": StopReason.MAX_TURNS,
    "TimeExceeded": StopReason.MAX_TIME,
    "RepeatedFormatError": StopReason.FORMAT_ERRORS,
}


class MiniSweEnvironment(HarnessEnvironment):
    """What mini-swe-agent's agents take as ``env``: the sandbox of a started episode.

    Args:
        episode: As for `HarnessEnvironment`.
        timeout: Seconds that one command may take.
        env: More environment variables for commands, such as those of a configuration file of
            mini-swe-agent.

    Raises:
        MissingDependencyError: mini-swe-agent is not installed.
    """

    def __init__(
        self, episode: Episode, *, timeout: float = 30, env: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(episode)
        seconds = positive_seconds("timeout", timeout)
        self._submitted = _module("minisweagent.exceptions").Submitted
        with episode.access() as context:
            workdir = context.sandbox.workdir
        self.config = {"cwd": workdir, "timeout": seconds, "env": dict(env or {})}

    def execute(
        self, action: Mapping[str, Any], cwd: str = "", *, timeout: float | None = None
    ) -> dict[str, Any]:
        """Runs the command of an action and returns ``output``, ``returncode``, ``exception_info``.

        Raises:
            minisweagent.exceptions.Submitted: The command succeeded, and the first line that it
                printed says that the work is done.
            SandboxError: The sandbox died.
        """
        command, seconds = action.get("command", ""), timeout or self.config["timeout"]
        options = {"cwd": cwd or self.config["cwd"], "env": self.config["env"]}
        try:
            result = self.run(command, timeout_s=seconds, **options)
        except (InvalidArgumentError, AttributeError) as error:
            return _failed("", str(error))
        if result.timed_out:
            message = f"Command {command!r} timed out after {seconds:g} seconds"
            return _failed(result.output, message)
        first, _, rest = result.output.lstrip().partition("\n")
        if result.ok and first.strip() == SUBMIT_LINE:
            extra = {"exit_status": "Submitted", "submission": rest}
            raise self._submitted({"role": "exit", "content": rest, "extra": extra})
        return {"output": result.output, "returncode": result.exit_code, "exception_info": ""}

    def get_template_vars(self, **kwargs: Any) -> dict[str, Any]:
        """Returns the variables of prompts: the config, and the sandbox's ``uname``."""
        answers = self.run(_ASK_UNAME, cwd="/").output.splitlines()
        return {**self.config, **dict(zip(_UNAME, answers, strict=False)), **kwargs}

    def serialize(self) -> dict[str, Any]:
        """Returns the config, as trajectories of mini-swe-agent keep it."""
        kind = f"{type(self).__module__}.{type(self).__name__}"
        return {"info": {"config": {"environment": self.config, "environment_type": kind}}}


def _failed(output: str, message: str) -> dict[str, Any]:
    problem = f"An error occurred while executing the command: {message}"
    return {"output": output, "returncode": -1, "exception_info": problem}


def _module(name: str) -> Any:
    """Returns a module of mini-swe-agent, imported without its greeting."""
    os.environ.setdefault("MSWEA_SILENT_STARTUP", "1")
    return import_optional(name, "'mini-swe-agent>=2'")


def mini_swe_agent() -> Harness:
    """Returns mini-swe-agent, with its own ``mini.yaml``, as an agent of runs.

    Its step, cost and time limits are the episode's ``max_turns``, ``max_cost`` and
    ``max_seconds``, and a command may take the episode's ``command_timeout_s``.

    Raises:
        MissingDependencyError: mini-swe-agent is not installed.
    """
    quiet_litellm()
    package_dir = _module("minisweagent").package_dir
    agents = _module("minisweagent.agents.default")
    models = _module("minisweagent.models.litellm_model")
    text = (package_dir / "config" / "mini.yaml").read_text(encoding="utf-8")
    config = import_module("yaml").safe_load(text)

    def make(episode: Episode, client: Any, _sampling: Sampling) -> Any:
        settings = config["model"] | {"model_name": LITELLM_MODEL, "cost_tracking": "ignore_errors"}
        model = models.LitellmModel(**settings)
        model.abort_exceptions = [Exception]  # the run's client has sent the request again already
        model.query = partial(model.query, client=client)
        with episode.access() as context:
            timeout_s = context.command_timeout_s
        env = MiniSweEnvironment(episode, timeout=timeout_s, env=config["environment"]["env"])
        limits = {
            "step_limit": episode.bounds.max_turns or 0,
            "cost_limit": episode.bounds.max_cost or 0.0,
            "wall_time_limit_seconds": int(episode.bounds.max_seconds or 0),
        }
        return agents.DefaultAgent(model, env, **config["agent"] | limits)

    return Harness(
        package="mini-swe-agent",
        make=make,
        stop_reason=lambda agent: _STOP_REASONS.get(
            agent.messages[-1]["extra"]["exit_status"], StopReason.STOPPED
        ),
        succeeded=_succeeded,
    )


def _succeeded(message: Message) -> bool:
    return bool(message["extra"]["returncode"] == 0)
