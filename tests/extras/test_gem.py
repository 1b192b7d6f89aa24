"""GEM's own registry, wrappers and vector environments on repair episodes."""

from typing import Any

import pytest
from episodes import FIX, SUBMIT, raising, shell
from processes import left_by_dropping

pytest.importorskip("gem", reason="needs pip install 'coding-gym[gem]'")

import gem
from gem.wrappers.episode_tracking_wrapper import EpisodeTrackingWrapper
from gem.wrappers.observation_wrapper import ObservationWrapper

from coding_gym.adapters.gem import ENV_ID, register
from coding_gym.errors import EpisodeError, InvalidArgumentError, SandboxError

pytestmark = pytest.mark.trainer


@pytest.fixture
def make(tiny_row: dict[str, Any]) -> Any:
    register()
    register()
    return lambda **kwargs: gem.make(ENV_ID, **{"tasks": [tiny_row]} | kwargs)


def test_an_episode_is_played_and_rewarded(make: Any) -> None:
    env = make()
    text, info = env.reset(seed=0)
    assert "area(3, 5) gives 8" in text
    assert (info["task_id"], info["use_tool"]) == ("shapes-area", False)
    _, reward, terminated, truncated, info = env.step(FIX)
    assert (reward, terminated, truncated, info["use_tool"]) == (0.0, False, False, True)
    assert env.step(SUBMIT)[1:4] == (1.0, True, False)
    with pytest.raises(EpisodeError, match="submitted"):
        env.step(SUBMIT)


def test_a_limit_truncates(make: Any) -> None:
    env = make(max_turns=1)
    env.reset()
    assert env.step(FIX)[1:4] == (1.0, False, True)


def test_seeds_choose_the_same_task(make: Any) -> None:
    one, two = make(tasks="bundled", seed=3), make(tasks="bundled")
    assert one.reset()[1]["task_id"] == two.reset(seed=3)[1]["task_id"]
    assert one.reset()[1]["task_id"] == two.reset()[1]["task_id"]


def test_a_spawned_environment_continues_by_itself(make: Any) -> None:
    env = make()
    env.reset(seed=0)
    env.step(FIX)
    other = env.spawn(same_state=True)
    new = env.spawn(max_turns=1)
    other.step(shell("git checkout shapes.py"))
    new.reset(seed=0)
    assert [each.step(SUBMIT)[1] for each in (env, other, new)] == [1.0, 0.0, 0.0]
    with pytest.raises(EpisodeError):
        make().spawn(same_state=True)


def test_the_wrappers_of_gem_go_around_it(make: Any) -> None:
    env = EpisodeTrackingWrapper(
        ObservationWrapper(make(), include_action=True, include_chat_template=False)
    )
    text, _ = env.reset(seed=0)
    seen = env.step(shell("cat shapes.py"))[0]
    assert text in seen
    assert "width + height" in seen


def test_a_vector_of_them_plays_and_resets(make: Any, tiny_row: dict[str, Any]) -> None:
    venv = gem.make_vec([ENV_ID, ENV_ID], tasks=[tiny_row], seed=1)
    venv.reset()
    venv.step([FIX, FIX])
    _, rewards, terminated, _, _ = venv.step([SUBMIT, FIX])
    assert (list(rewards), list(terminated)) == ([1.0, 0.0], [True, False])


def test_a_lost_sandbox_truncates(make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    env = make()
    monkeypatch.setattr("gymnasium.core.Wrapper.reset", raising(SandboxError("no room")))
    assert "could not be opened" in env.reset(seed=0)[0]
    _, reward, terminated, truncated, info = env.step(SUBMIT)
    assert (reward, terminated, truncated) == (0.0, False, True)
    assert (info["mask_sample"], info["error"]) == (True, "no room")


def test_a_dropped_environment_leaves_no_process(make: Any) -> None:
    def begun() -> Any:
        env = make()
        env.reset()
        return env

    begun().step(SUBMIT)
    assert left_by_dropping(begun) == set()


def test_the_callers_mistakes_are_named(make: Any) -> None:
    with pytest.raises(InvalidArgumentError, match="max_truns"):
        make(max_truns=3)
