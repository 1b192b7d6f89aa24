"""What holds for every wrapper of the package."""

import importlib
import inspect
import json
import pkgutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from episodes import Closing, Env, as_text, play
from gymnasium.envs.registration import EnvSpec
from gymnasium.utils.env_checker import check_env
from gymnasium.wrappers import TimeLimit

import coding_gym.wrappers
from coding_gym import Stop
from coding_gym.errors import InvalidArgumentError
from coding_gym.rollout import read_trajectories

Make = Callable[[], Env]
COMPOSITE = [{"name": "file_match", "weight": 0.125}, {"name": "diff_size", "weight": 0.0625}]

# Arguments other than the defaults, by wrapper; `path` stands for a file of the test's own.
ARGUMENTS: dict[str, dict[str, Any]] = {
    "CollapseDetector": {"repeats": 5},
    "CostBudget": {"max_cost": 2.5, "input_price": 3.0, "output_price": 15.0},
    "FormatErrorLimit": {"max_errors": 4},
    "MenuActions": {"num_candidates": 5},
    "CompositeReward": {"parts": COMPOSITE},
    "PatchSimilarityReward": {"weight": 0.125},
    "RecordTrajectory": {"path": "path"},
    "TestPassReward": {"weight": 0.25, "measure": "fraction"},
    "TextObservation": {"scope": "transcript", "max_chars": 500, "overflow": "ends"},
    "TimeBudget": {"max_seconds": 700.0, "clock": "wall"},
    "TokenActions": {"max_new_tokens": 7},
    "TokenBudget": {"max_tokens": 4000, "reserve_tokens": 100, "response_limit": 512},
    "ToolCallBudget": {"max_tool_calls": 9, "warnings": False},
    "TranscriptObservation": {"max_tokens": 64, "overflow": "ends"},
    "VisibleTestShaping": {"weight": 0.0625, "gamma": 0.99},
}
NAMES = sorted(ARGUMENTS)

# (outer, inner) pairs that make no sense, besides every wrapper around itself.
REFUSED = {
    ("MenuActions", "TokenActions"),
    ("TokenActions", "MenuActions"),
    ("PatchSimilarityReward", "RecordTrajectory"),
    ("TestPassReward", "RecordTrajectory"),
    ("CompositeReward", "RecordTrajectory"),
    ("VisibleTestShaping", "RecordTrajectory"),
    ("TextObservation", "TranscriptObservation"),
    ("TranscriptObservation", "TextObservation"),
    ("MenuActions", "TextObservation"),
}


# Around one another, from the inside out: chains with all wrappers between them.
INNER = ["TokenBudget", "ToolCallBudget", "TimeBudget", "CostBudget", "CollapseDetector"]
INNER += ["FormatErrorLimit", "PatchSimilarityReward", "TestPassReward"]
INNER += ["CompositeReward", "VisibleTestShaping"]
CHAINS = [
    [*INNER, "TranscriptObservation", "MenuActions", "RecordTrajectory"],
    [*INNER, "TokenActions", "TextObservation", "RecordTrajectory"],
]


def arguments_of(name: str, tmp_path: Path) -> dict[str, Any]:
    return {
        key: str(tmp_path / "episodes.jsonl") if value == "path" else value
        for key, value in ARGUMENTS[name].items()
    }


def wrap(env: Env, name: str, tmp_path: Path) -> Env:
    arguments = arguments_of(name, tmp_path)
    wrapper: Env = getattr(coding_gym.wrappers, name)(env, **arguments)
    return wrapper


@pytest.fixture
def make(tiny_row: dict[str, Any], closing: Closing) -> Make:
    return lambda: closing(gym.make("CodingRepair-v0", tasks=[tiny_row], max_obs_tokens=128))


def test_every_wrapper_is_listed_here() -> None:
    assert sorted(coding_gym.wrappers.__all__) == coding_gym.wrappers.__all__ == NAMES


def test_every_wrapper_of_the_package_is_exported() -> None:
    names = [found.name for found in pkgutil.iter_modules(coding_gym.wrappers.__path__)]
    wrappers = {
        name
        for module in (importlib.import_module(f"coding_gym.wrappers.{name}") for name in names)
        for name, kind in vars(module).items()
        if isinstance(kind, type) and issubclass(kind, gym.Wrapper)
        if kind.__module__ == module.__name__ and not name.startswith("_")
    }
    assert sorted(wrappers) == coding_gym.wrappers.__all__


def test_the_spec_makes_an_equal_env_through_json(make: Make, tmp_path: Path) -> None:
    for name in NAMES:
        wrapped = wrap(make(), name, tmp_path)
        assert wrapped.spec is not None, name
        recorded = wrapped.spec.additional_wrappers[-1]
        parameters = list(inspect.signature(type(wrapped).__init__).parameters)[2:]
        assert recorded.name == name
        assert sorted(recorded.kwargs or {}) == sorted(parameters), name
        assert recorded.kwargs == {**(recorded.kwargs or {}), **arguments_of(name, tmp_path)}, name
        again = gym.make(EnvSpec.from_json(wrapped.spec.to_json()))
        assert again.spec == wrapped.spec, name
        assert type(again) is type(wrapped)
        assert again.observation_space == wrapped.observation_space, name
        assert again.action_space == wrapped.action_space, name
        again.close()


def test_the_defaults_of_arguments_are_json_native() -> None:
    for name in NAMES:
        signature = inspect.signature(getattr(coding_gym.wrappers, name).__init__)
        defaults = [p.default for p in signature.parameters.values() if p.default is not p.empty]
        assert json.loads(json.dumps(defaults)) == defaults, name


@pytest.mark.parametrize(("outer", "inner"), sorted(REFUSED | {(name, name) for name in NAMES}))
def test_a_senseless_pair_is_refused_by_name(
    outer: str, inner: str, make: Make, tmp_path: Path
) -> None:
    inside = wrap(make(), inner, tmp_path)
    with pytest.raises(InvalidArgumentError, match=f"{outer} .* {inner}"):
        wrap(inside, outer, tmp_path)


@pytest.mark.parametrize("name", NAMES)
def test_a_wrapper_passes_all_parts_of_a_step_on(name: str, make: Make, tmp_path: Path) -> None:
    env = wrap(make(), name, tmp_path)
    observation, info = env.reset(seed=0)
    assert (observation in env.observation_space, info["turn"]) == (True, 0)
    observation, reward, terminated, truncated, info = env.step(a_thought(env))
    assert observation in env.observation_space
    assert (float(reward), terminated, truncated) == (0.0, False, False)
    assert (info["turn"], info["stop_reason"], info["error"]) == (1, None, "")
    observation, reward, terminated, truncated, info = env.step(Stop("enough"))
    assert observation in env.observation_space
    assert (float(reward), terminated, truncated) == (0.0, False, True)
    assert (info["turn"], info["stop_reason"]) == (2, "stopped")
    assert info["grade"].reason == "empty_patch"
    assert set(info["reward_parts"]) == {"resolved", *parts_of(env)}


def a_thought(env: Env) -> Any:
    """Returns an action that runs nothing."""
    if isinstance(env.action_space, gym.spaces.Discrete):
        return 0  # of the menu: run the tests, which only prints their result
    if isinstance(env.action_space, gym.spaces.MultiDiscrete):
        return np.zeros(env.action_space.shape, np.int64)
    return "Let me think."


def parts_of(env: Env) -> list[str]:
    """Returns the names of the reward parts of all wrappers in a chain."""
    if env is env.unwrapped:
        return []
    return [*getattr(env, "part_names", ()), *parts_of(env.env)]  # type: ignore[attr-defined]


def test_other_environments_are_refused(env: Env, tmp_path: Path) -> None:
    for name in NAMES:
        with pytest.raises(InvalidArgumentError, match=f"{name} .*CartPole"):
            wrap(gym.make("CartPole-v1"), name, tmp_path)
        with pytest.raises(InvalidArgumentError, match="max_turns"):
            wrap(TimeLimit(env, 10), name, tmp_path)


def test_a_subclass_is_refused_where_its_base_is(env: Env, tmp_path: Path) -> None:
    class Mine(coding_gym.wrappers.RecordTrajectory):
        pass

    with pytest.raises(InvalidArgumentError):
        coding_gym.wrappers.TestPassReward(Mine(env, tmp_path / "episodes.jsonl"))


@pytest.mark.filterwarnings("ignore:.*is different from the unwrapped version")
@pytest.mark.parametrize("name", NAMES)
def test_gymnasium_checker_finds_nothing(name: str, env: Env, tmp_path: Path) -> None:
    wrapped = wrap(env.unwrapped, name, tmp_path)
    check_env(wrapped, skip_render_check=True)
    assert wrapped.reset(seed=1)[0] in wrapped.observation_space
    wrapped.close()


def outcomes(tmp_path: Path) -> list[Any]:
    """Returns what the records say of each episode's turns, the times apart."""
    path = tmp_path / "episodes.jsonl"
    return [
        [(turn.action, turn.token_ids, turn.reward, turn.reward_parts) for turn in episode.turns]
        for episode in (read_trajectories(path) if path.exists() else ())
    ]


def some_actions(env: Env) -> list[Any]:
    """Returns five actions: cheap ones, and an edit where a reward is measured on the patch."""
    if isinstance(env.action_space, gym.spaces.Discrete):
        return [0, 2, 0, 3, 0]  # of the menu: run the tests, try the first, ...
    if isinstance(env.action_space, gym.spaces.MultiDiscrete):
        return [env.action_space.sample() for _ in range(5)]
    edit = "echo '# note' >> shapes.py" if parts_of(env) else "echo note >> /tmp/note"
    commands = ["cat shapes.py", "false", edit, "cat shapes.py", "cat shapes.py /tmp/note"]
    return [json.dumps({"name": "shell", "arguments": {"cmd": c}}) for c in commands]


# These run tests or grade patches: only in a chain, which compares all that they give.
COSTLY = {"MenuActions", "VisibleTestShaping", "CompositeReward", "PatchSimilarityReward"}
COSTLY |= {"TestPassReward"}
ALONE = [[name] for name in NAMES if name not in COSTLY]


@pytest.mark.parametrize(
    "names",
    [[], *ALONE, *(pytest.param(chain, marks=pytest.mark.slow) for chain in CHAINS)],
    ids=lambda names: "-".join(names[-2:]),
)
def test_snapshots_keep_all_state(names: list[str], env: Env, tmp_path: Path) -> None:
    for name in names:
        env = wrap(env, name, tmp_path)
    env.action_space.seed(4)
    env.reset(seed=0)
    actions = [*some_actions(env), Stop("enough")]
    play(env, actions[:2])
    last = env.step(actions[2])
    moment = coding_gym.snapshot(env)
    forked = coding_gym.fork(env)
    again = gym.make(env.spec)
    expected = play(env, actions[3:])
    samples = str([env.action_space.sample() for _ in range(3)])

    for each in (env, again):
        assert as_text(*coding_gym.restore(each, moment)) == as_text(last[0], last[4])
    for each in (env, again, forked):
        assert play(each, actions[3:]) == expected
        assert str([each.action_space.sample() for _ in range(3)]) == samples
        each.close()
    records = outcomes(tmp_path)
    assert len(records) == (4 if "RecordTrajectory" in names else 0)
    assert all(record == records[0] and len(record) == 6 for record in records)
