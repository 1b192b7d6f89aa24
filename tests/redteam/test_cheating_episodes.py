"""Policies that cheat in their sandboxes: none is resolved, and a real repair still is."""

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
# That cheat replaces the source by a link, so an edit of the file does not repair it.
IN_PLACE = [name for name in EPISODES if name != "a source outside of the tree"]
NUM_GROUPS = 5


@pytest.fixture(scope="module")
def play() -> Iterator[Play]:
    """Plays an episode of some shell scripts and a harmless change; returns its grade."""
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
