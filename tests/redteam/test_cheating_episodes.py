"""Policies that cheat in their sandboxes: no cheat resolves the task, and a real repair does."""

from collections.abc import Callable, Iterator

import pytest
from cheats import cheat_params
from episode_cheats import EPISODES, HARMLESS
from episodes import SUBMIT, shell
from grading_fixtures import TASK

from coding_gym import Grade
from coding_gym.envs import CodingRepairEnv

Play = Callable[..., Grade]
REPAIR = "sed -i 's/+ discount/- discount/' cart.py"
# "a source outside of the tree" replaces the source by a link, which `REPAIR` does not edit.
IN_PLACE = [name for name in EPISODES if name != "a source outside of the tree"]
NUM_GROUPS = 5


@pytest.fixture(scope="module")
def play() -> Iterator[Play]:
    """Returns a function that plays an episode of shell scripts and returns its grade."""
    env = CodingRepairEnv(tasks=[TASK.to_row()])

    def run(*scripts: str) -> Grade:
        env.reset()
        for command in (*scripts, HARMLESS):
            env.step(shell(command))
        info = env.step(SUBMIT)[4]
        assert not info["error"], info["error"]
        grade: Grade = info["grade"]
        return grade

    yield run
    env.close()


@pytest.mark.parametrize("name", cheat_params(EPISODES))
def test_a_policy_that_cheats_earns_nothing(play: Play, name: str) -> None:
    verdict = play(EPISODES[name])
    assert (verdict.resolved, verdict.reason) == (False, "tests_failed"), verdict


@pytest.mark.slow
@pytest.mark.parametrize("group", range(NUM_GROUPS))
def test_changes_of_cheating_episodes_do_not_fail_a_real_repair(play: Play, group: int) -> None:
    names = IN_PLACE[group::NUM_GROUPS]
    verdict = play(*(EPISODES[name] for name in names), REPAIR)
    assert verdict.resolved, (names, verdict)
