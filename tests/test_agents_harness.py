"""Infrastructure failures while another project's loop plays are never blamed on its policy."""

from collections.abc import Callable
from typing import Any

import pytest
from episodes import Closing

from coding_gym.action import Stop
from coding_gym.agents.nano_agent import NanoEnvironment
from coding_gym.episode import Episode, EpisodeConfig
from coding_gym.errors import SandboxError
from coding_gym.trajectory import StopReason


@pytest.fixture
def episode(tiny_row: dict[str, Any], closing: Closing) -> Episode:
    factory = EpisodeConfig.from_config(tasks=[tiny_row])
    episode: Episode = closing(factory.create(factory.tasks[0]))
    episode.start()
    return episode


@pytest.mark.parametrize(
    "access",
    [
        lambda env: env.run_shell("ls"),
        lambda env: env.read_file("shapes.py"),
        lambda env: env.write_file("shapes.py", ""),
        lambda env: env.file_exists("shapes.py"),
        lambda env: env.is_clean(),
        lambda env: env.get_diff(),
    ],
)
def test_infrastructure_failure_in_a_loop_gets_no_grade(
    access: Callable[[NanoEnvironment], Any], episode: Episode
) -> None:
    with episode.access() as context:
        context.sandbox.close()
    with pytest.raises(SandboxError) as raised:
        access(NanoEnvironment(episode))
    episode.step(Stop())
    assert episode.stop_reason is StopReason.SANDBOX_ERROR
    assert (episode.grade, episode.error) == (None, str(raised.value))


def test_what_the_policy_gets_wrong_is_no_failure_of_ours(episode: Episode) -> None:
    for path, kind in (("/etc/passwd", ValueError), ("no.py", OSError), (".", OSError)):
        with pytest.raises(kind):
            NanoEnvironment(episode).read_file(path)
    episode.step(Stop())
    assert episode.grade is not None
