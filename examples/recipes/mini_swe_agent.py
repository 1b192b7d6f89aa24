"""Runs episodes with mini-swe-agent's runner in this package's sandbox."""

from minisweagent.environments.local import LocalEnvironment

from coding_gym import Stop
from coding_gym.episode import Episode, EpisodeConfig


class RepairEnvironment(LocalEnvironment):
    """An environment for mini-swe-agent's option ``--environment-class``."""

    def __init__(self, *, task_id: str, tasks: str = "bundled", **settings: object) -> None:
        super().__init__(**settings)
        config = EpisodeConfig.from_config(tasks=tasks, task_ids=[task_id])
        self.episode = Episode(config.tasks[0], config)
        self.episode.start()

    def execute(self, action: dict[str, str], *_: object, **__: object) -> dict[str, object]:
        """Returns output and exit code of a command; raises ``Submitted`` at the end."""
        with self.episode.access() as context:
            result = context.sandbox.run(action["command"], timeout_s=self.config.timeout)
        error = "the command timed out" if result.timed_out else ""
        output = {"output": result.output, "returncode": result.exit_code, "exception_info": error}
        self._check_finished(output)
        return output

    def grade(self) -> bool:
        """Ends the episode and returns whether the hidden tests pass."""
        self.episode.step(Stop("mini-swe-agent has ended"))
        return bool(self.episode.grade and self.episode.grade.resolved)
