"""skyrl-gym's own registry, and the calls that SkyRL's generator makes, from a pool of threads."""

import pickle
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from episodes import FIX, SUBMIT, raising
from processes import left_by_dropping

pytest.importorskip("skyrl_gym", reason="needs pip install 'coding-gym[skyrl]'")

import skyrl_gym
from skyrl_gym.envs.base_text_env import BaseTextEnv
from skyrl_gym.metrics import aggregate_for_environment

from coding_gym.adapters.skyrl import ENV_CLASS, register, rows
from coding_gym.errors import InvalidArgumentError, SandboxError, UnknownTaskError

pytestmark = pytest.mark.trainer


@pytest.fixture
def make(tiny_row: dict[str, Any]) -> Any:
    """Makes an environment as SkyRL does, from configuration and row."""
    register()
    register()

    def made(config: dict[str, Any] | None = None, **extras: Any) -> Any:
        settings = {"tasks": [tiny_row], **(config or {})}
        return skyrl_gym.make(
            ENV_CLASS, env_config=settings, extras={"task_id": "shapes-area", **extras}
        )

    return made


def play(env: Any, *actions: str) -> list[Any]:
    opening, _ = env.init([{"role": "user", "content": "Repair it."}])
    assert [message["role"] for message in opening] == ["system", "user"]
    return [env.step(action) for action in actions]


def test_an_episode_is_played_and_rewarded(make: Any) -> None:
    env = make()
    assert isinstance(env, BaseTextEnv)
    first, last = play(env, FIX, SUBMIT)
    assert (first["reward"], first["done"]) == (0.0, False)
    assert first["observations"][0]["role"] == "tool"
    assert (last["reward"], last["done"], last["observations"]) == (1.0, True, [])
    assert last["metadata"]["resolved"]
    assert env.get_metrics() == {"turn": 2, "tool_calls": 2, "resolved": 1.0, "lost": 0.0}
    env.close()
    env.close()


def test_the_smaller_number_of_turns_ends_the_episode(make: Any) -> None:
    env = make({"max_turns": 5}, max_turns=1)
    (last,) = play(env, FIX)
    assert (last["reward"], last["done"]) == (1.0, True)
    assert last["metadata"]["stop_reason"] == "max_turns"


def test_episodes_play_apart_on_a_pool_of_threads(make: Any) -> None:
    with ThreadPoolExecutor(3) as pool:
        actions = [(FIX, SUBMIT), (SUBMIT,), (FIX, SUBMIT)]
        played = [pool.submit(play, make(), *each) for each in actions]
        rewards = [future.result()[-1]["reward"] for future in played]
    assert rewards == [1.0, 0.0, 1.0]


def test_a_lost_sandbox_ends_the_episode_and_not_the_rate(
    make: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    lost, good = make(), make()
    with monkeypatch.context() as patch:
        patch.setattr("gymnasium.core.Wrapper.reset", raising(SandboxError("no room")))
        lost.init([])
    last = lost.step(SUBMIT)
    assert (last["reward"], last["done"], last["metadata"]["mask_sample"]) == (0.0, True, True)
    play(good, FIX, SUBMIT)
    metrics = aggregate_for_environment(ENV_CLASS, [lost.get_metrics(), good.get_metrics()])
    assert (metrics["resolved"], metrics["lost"]) == (1.0, 0.5)


def test_a_dropped_environment_leaves_no_process(make: Any) -> None:
    def begun() -> Any:
        env = make()
        play(env, FIX)
        return env

    begun().step(SUBMIT)
    assert left_by_dropping(begun) == set()


def test_the_callers_mistakes_are_named(make: Any) -> None:
    with pytest.raises(InvalidArgumentError, match="max_truns"):
        make({"max_truns": 3})
    with pytest.raises(InvalidArgumentError, match="either a task_id or a task"):
        make(task_id=None)
    with pytest.raises(UnknownTaskError):
        play(make(task_id="other"))


def test_rows_name_the_environment_and_the_task(tiny_row: dict[str, Any]) -> None:
    (row,) = rows([tiny_row], split="train")
    assert (row["env_class"], row["task_id"]) == (ENV_CLASS, "shapes-area")
    assert pickle.loads(pickle.dumps(row)) == row  # noqa: S301 - our own
