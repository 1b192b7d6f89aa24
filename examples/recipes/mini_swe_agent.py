"""mini-swe-agent's own runner on this package's sandbox: a class of its environments.

mini --environment-class mini_swe_agent.RepairEnvironment -c mini.yaml -c environment.task_id=…
"""

from typing import Any

from minisweagent.environments.local import LocalEnvironment, LocalEnvironmentConfig

from coding_gym.action import Stop
from coding_gym.episode import EpisodeConfig


class RepairConfig(LocalEnvironmentConfig):
    """The settings of mini-swe-agent's local environment, and a task."""

    tasks: Any = "bundled"
    task_id: str


class RepairEnvironment(LocalEnvironment):
    """Runs commands in the sandbox of an episode."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(config_class=RepairConfig, **settings)
        config = EpisodeConfig.from_config(tasks=self.config.tasks, task_ids=[self.config.task_id])
        self.episode = config.create(config.tasks[0])
        self.episode.start()

    def execute(
        self, action: dict[str, Any], cwd: str = "", *, timeout: int | None = None
    ) -> dict[str, Any]:
        """Returns output and exit code of a command; raises ``Submitted`` at the end."""
        options = {"timeout_s": timeout or self.config.timeout, "env": self.config.env}
        with self.episode.access() as context:
            result = context.sandbox.run(action.get("command", ""), cwd=cwd or None, **options)
        error = "the command timed out" if result.timed_out else ""
        output = {"output": result.output, "returncode": result.exit_code, "exception_info": error}
        self._check_finished(output)
        return output

    def get_template_vars(self, **variables: Any) -> dict[str, Any]:
        """Returns variables of prompts, without the host's environment."""
        uname = dict.fromkeys(("system", "node", "release", "version", "machine"), "")
        return {**self.config.model_dump(), **uname, "system": "Linux", **variables}

    def grade(self) -> bool:
        """Ends the episode and returns whether the hidden tests pass."""
        self.episode.step(Stop("mini-swe-agent has ended"))
        return bool(self.episode.grade and self.episode.grade.resolved)
