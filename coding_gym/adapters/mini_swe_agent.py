"""mini-swe-agent's own loop in our sandbox, graded by us.

    with MiniSweEnvironment("ledgerline-month-overlap") as env:
        DefaultAgent(LitellmModel(model_name="openai/…"), env, **config["agent"]).run(
            env.task.problem_statement
        )
        print(env.grade().resolved)

It has the methods of the ``Environment`` protocol of mini-swe-agent 2. Commands run in ``bash``,
one process each. Templates are told of the sandbox only: that project's local environment gives
them every environment variable of the host, keys included.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from importlib import import_module
from typing import Any, Self

from coding_gym.adapters.harness import HarnessEnvironment
from coding_gym.arguments import positive_seconds
from coding_gym.calls import ExecResult
from coding_gym.errors import InvalidArgumentError, MissingDependencyError
from coding_gym.task import Task
from coding_gym.tools.bash import SUBMIT_LINE

_UNAME = ("system", "node", "release", "version", "machine")
_ASK_UNAME = "for option in -s -n -r -v -m; do uname $option; done"


@dataclass(frozen=True, slots=True, kw_only=True)
class MiniSweConfig:
    """What is known of the environment, with the names that mini-swe-agent uses.

    Attributes:
        cwd: Where commands run.
        timeout: Seconds that one may take.
        env: More environment variables.
    """

    cwd: str = ""
    timeout: float = 30
    env: Mapping[str, str] = field(default_factory=dict)

    def model_dump(self, mode: str = "python") -> dict[str, Any]:  # noqa: ARG002 - as pydantic's
        """Returns the fields by name."""
        return asdict(self)


class MiniSweEnvironment(HarnessEnvironment):
    """What mini-swe-agent's agents take as ``env``: a sandbox with a task's base tree.

    Args:
        task: A task, its row, or the id of a bundled one.
        sandbox: As for ``CodingRepair-v0``.
        timeout: Seconds that one command may take.
        env: More environment variables for commands, such as those of a configuration file of
            mini-swe-agent.

    Raises:
        MissingDependencyError: mini-swe-agent is not installed.
        UnknownTaskError, InvalidTaskError, InvalidArgumentError, UnknownNameError: An argument
            cannot be used.
    """

    def __init__(
        self,
        task: Task | str | Mapping[str, Any],
        *,
        sandbox: str | Mapping[str, Any] = "auto",
        timeout: float = 30,
        env: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(task, sandbox=sandbox)
        seconds = positive_seconds("timeout", timeout)
        self._submitted = _submitted_class()
        self.config = MiniSweConfig(timeout=seconds, env=dict(env or {}))

    def __enter__(self) -> Self:
        self.open()
        with self.episode.access() as context:
            self.config = replace(self.config, cwd=context.sandbox.workdir)
        return self

    def execute(
        self, action: Mapping[str, Any], cwd: str = "", *, timeout: float | None = None
    ) -> dict[str, Any]:
        """Runs the command of an action and returns ``output``, ``returncode``, ``exception_info``.

        Raises:
            minisweagent.exceptions.Submitted: The command succeeded, and the first line that it
                printed says that the work is done.
            SandboxError: The sandbox died.
        """
        command, seconds = action.get("command", ""), timeout or self.config.timeout
        try:
            command.encode()
            place = cwd or self.config.cwd
            env = dict(self.config.env)
            result = self.run(command, cwd=place, timeout_s=seconds, env=env)
        except (InvalidArgumentError, UnicodeEncodeError, AttributeError) as error:
            return _failed("", type(error).__name__, str(error))
        if result.timed_out:
            said = f"Command {command!r} timed out after {seconds:g} seconds"
            return _failed(result.output, "TimeoutExpired", said)
        self._check_finished(result)
        return {"output": result.output, "returncode": result.exit_code, "exception_info": ""}

    def get_template_vars(self, **kwargs: Any) -> dict[str, Any]:
        """Returns what prompts may tell of the environment: its config, and the sandbox's uname."""
        answers = self.run(_ASK_UNAME, cwd="/").output.splitlines()
        uname = dict(zip(_UNAME, answers, strict=False))
        return {**self.config.model_dump(), **uname, **kwargs}

    def serialize(self) -> dict[str, Any]:
        """Returns the config, as trajectories of mini-swe-agent keep it."""
        kind = f"{type(self).__module__}.{type(self).__name__}"
        config = {"environment": self.config.model_dump(mode="json"), "environment_type": kind}
        return {"info": {"config": config}}

    def _check_finished(self, result: ExecResult) -> None:
        first, _, rest = result.output.lstrip().partition("\n")
        if result.ok and first.strip() == SUBMIT_LINE:
            extra = {"exit_status": "Submitted", "submission": rest}
            raise self._submitted({"role": "exit", "content": rest, "extra": extra})


def _failed(output: str, kind: str, said: str) -> dict[str, Any]:
    return {
        "output": output,
        "returncode": -1,
        "exception_info": f"An error occurred while executing the command: {said}",
        "extra": {"exception_type": kind, "exception": said},
    }


def _submitted_class() -> type[Exception]:
    """Returns the exception by which an environment ends mini-swe-agent's loop."""
    try:
        exceptions = import_module("minisweagent.exceptions")
    except ImportError as error:
        raise MissingDependencyError(
            "mini-swe-agent 2 is not installed; run: pip install 'mini-swe-agent>=2'"
        ) from error
    kind: type[Exception] = exceptions.Submitted
    return kind
