"""What fails on our side while another harness plays is never blamed on its policy."""

import re
from collections.abc import Callable
from typing import Any

import pytest
from faults import raising

from coding_gym.agents.nano_agent import NanoEnvironment
from coding_gym.errors import EpisodeError, MachineryError, SandboxError
from coding_gym.grade import GradeReason


@pytest.fixture
def env(tiny_row: dict[str, Any]) -> NanoEnvironment:
    return NanoEnvironment(tiny_row)


@pytest.mark.parametrize(
    "access",
    [
        lambda env: env.run_shell("ls"),
        lambda env: env.read_file("shapes.py"),
        lambda env: env.write_file("shapes.py", ""),
        lambda env: env.file_exists("shapes.py"),
        lambda env: env.is_clean(),
        lambda env: env.is_git_repo(),
        lambda env: env.get_diff(),
    ],
)
def test_a_failure_that_the_harness_swallows_is_raised_by_the_grade(
    access: Callable[[NanoEnvironment], Any], env: NanoEnvironment
) -> None:
    env.start()
    with env.episode.access() as context:
        context.sandbox.close()
    with pytest.raises(SandboxError) as raised:
        access(env)
    for _ in range(2):
        with pytest.raises(SandboxError, match=re.escape(str(raised.value))):
            env.grade()


def test_a_start_that_fails_leaves_nothing_of_the_run_before(
    env: NanoEnvironment, monkeypatch: pytest.MonkeyPatch
) -> None:
    env.start()
    assert env.run_shell("sed -i s/+/*/ shapes.py").returncode == 0
    assert env.grade().resolved

    with monkeypatch.context() as patch:
        patch.setattr("coding_gym.episode.episode.open_clean", raising(SandboxError("no room")))
        with pytest.raises(MachineryError):  # a harness may swallow it
            env.start()
    with pytest.raises(SandboxError, match="no room"):
        env.grade()
    env.start()
    assert env.grade().reason is GradeReason.EMPTY_PATCH


def test_what_the_policy_gets_wrong_is_no_failure_of_ours(env: NanoEnvironment) -> None:
    env.start()
    for path, kind in (("/etc/passwd", ValueError), ("no.py", ValueError), (".", OSError)):
        with pytest.raises(kind):
            env.read_file(path)
    assert not env.grade().resolved


def test_only_a_running_episode_is_graded(env: NanoEnvironment) -> None:
    with pytest.raises(EpisodeError, match="let the harness play first"):
        env.grade()
    env.start()
    env.close()
    with pytest.raises(EpisodeError, match="was closed"):
        env.grade()
