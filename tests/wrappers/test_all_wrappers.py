"""What holds for every wrapper of the package, and for every pair of them."""

import importlib
import inspect
import itertools
import json
import pkgutil
from pathlib import Path
from types import ModuleType
from typing import Any

import gymnasium as gym
import pytest
from gymnasium.envs.registration import EnvSpec
from gymnasium.utils.env_checker import check_env
from gymnasium.wrappers import TimeLimit

import coding_gym.wrappers
from coding_gym import Stop
from coding_gym.errors import InvalidArgumentError
from coding_gym.rollout import read_trajectories

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


def wrap(env: gym.Env[Any, Any], name: str, tmp_path: Path) -> gym.Env[Any, Any]:
    arguments = {
        key: str(tmp_path / "episodes.jsonl") if value == "path" else value
        for key, value in ARGUMENTS[name].items()
    }
    wrapper: gym.Env[Any, Any] = getattr(coding_gym.wrappers, name)(env, **arguments)
    return wrapper


@pytest.fixture
def env(tiny_row: dict[str, Any]) -> gym.Env[Any, Any]:
    return gym.make("CodingRepair-v0", tasks=[tiny_row], max_obs_tokens=128)


def test_every_wrapper_is_listed_here() -> None:
    assert sorted(coding_gym.wrappers.__all__) == coding_gym.wrappers.__all__ == NAMES


def test_every_wrapper_of_the_room_is_exported_and_has_a_file_of_its_own() -> None:
    room = coding_gym.wrappers
    modules = [
        importlib.import_module(f"{room.__name__}.{found.name}")
        for found in pkgutil.iter_modules(room.__path__)
    ]
    wrappers = [
        [name for name, kind in vars(module).items() if is_wrapper_of(module, kind)]
        for module in modules
    ]
    assert sorted(itertools.chain(*wrappers)) == room.__all__
    assert max(len(names) for names in wrappers) == 1


def is_wrapper_of(module: ModuleType, kind: object) -> bool:
    return (
        isinstance(kind, type)
        and issubclass(kind, gym.Wrapper)
        and kind.__module__ == module.__name__
    )


@pytest.mark.parametrize("name", NAMES)
def test_constructor_arguments_are_recorded(
    name: str, env: gym.Env[Any, Any], tmp_path: Path
) -> None:
    wrapped: Any = wrap(env, name, tmp_path)
    parameters = list(inspect.signature(type(wrapped).__init__).parameters)[2:]
    assert sorted(wrapped._saved_kwargs) == sorted(parameters)
    wrapped.close()


@pytest.mark.parametrize("name", NAMES)
def test_the_spec_makes_an_equal_env_through_json(
    name: str, env: gym.Env[Any, Any], tmp_path: Path
) -> None:
    wrapped = wrap(env, name, tmp_path)
    assert wrapped.spec is not None
    again = gym.make(EnvSpec.from_json(wrapped.spec.to_json()))
    assert again.spec == wrapped.spec
    assert type(again) is type(wrapped)
    assert again.observation_space == wrapped.observation_space
    assert again.action_space == wrapped.action_space
    wrapped.close()
    again.close()


@pytest.mark.parametrize("name", NAMES)
def test_the_arguments_are_named_and_json_native(name: str) -> None:
    signature = inspect.signature(getattr(coding_gym.wrappers, name).__init__)
    defaults = [p.default for p in signature.parameters.values() if p.default is not p.empty]
    assert json.loads(json.dumps(defaults)) == defaults


@pytest.mark.parametrize(("outer", "inner"), list(itertools.product(NAMES, NAMES)))
def test_a_pair_composes_or_is_refused_by_name(
    outer: str, inner: str, env: gym.Env[Any, Any], tmp_path: Path
) -> None:
    inside = wrap(env, inner, tmp_path)
    if outer != inner and (outer, inner) not in REFUSED:
        both = wrap(inside, outer, tmp_path)
        observation, _ = both.reset(seed=0)
        assert observation in both.observation_space
        both.close()
        return
    with pytest.raises(InvalidArgumentError, match=f"{outer} cannot be put around {inner}: "):
        wrap(inside, outer, tmp_path)
    env.close()


@pytest.mark.parametrize("name", NAMES)
def test_other_environments_are_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidArgumentError, match=f"{name} wraps CodingRepair-v0, got CartPole"):
        wrap(gym.make("CartPole-v1"), name, tmp_path)  # with the TimeLimit it comes with


def test_a_subclass_is_refused_where_its_base_is(env: gym.Env[Any, Any], tmp_path: Path) -> None:
    class Mine(coding_gym.wrappers.RecordTrajectory):
        pass

    with pytest.raises(InvalidArgumentError, match="around RecordTrajectory: "):
        coding_gym.wrappers.TestPassReward(Mine(env, tmp_path / "episodes.jsonl"))


@pytest.mark.parametrize("name", NAMES)
def test_a_stock_time_limit_inside_is_refused(
    name: str, env: gym.Env[Any, Any], tmp_path: Path
) -> None:
    with pytest.raises(InvalidArgumentError, match="max_turns"):
        wrap(TimeLimit(env, 10), name, tmp_path)


@pytest.mark.filterwarnings("ignore:.*is different from the unwrapped version")
@pytest.mark.parametrize("name", NAMES)
def test_gymnasiums_checker_finds_nothing(
    name: str, env: gym.Env[Any, Any], tmp_path: Path
) -> None:
    wrapped = wrap(env.unwrapped, name, tmp_path)
    check_env(wrapped, skip_render_check=True)
    assert wrapped.reset(seed=1)[0] in wrapped.observation_space
    wrapped.close()


def play(env: gym.Env[Any, Any], actions: list[Any]) -> list[str]:
    """Plays actions; returns what came back, as text that is equal only for equal bytes."""
    return [as_text(*env.step(action)) for action in actions]


def as_text(observation: Any, *others: Any) -> str:
    if isinstance(observation, dict):
        observation = {k: (str(value.dtype), value.tolist()) for k, value in observation.items()}
    *rest, info = others
    budget = info["budget"] | {"seconds": None}  # a clock's
    return json.dumps([observation, *rest, info | {"budget": budget}])


def outcomes(tmp_path: Path) -> list[Any]:
    """Returns what the records say of each episode's turns, the times apart."""
    path = tmp_path / "episodes.jsonl"
    return [
        [(turn.action, turn.token_ids, turn.reward, turn.reward_parts) for turn in episode.turns]
        for episode in (read_trajectories(path) if path.exists() else ())
    ]


def some_actions(env: gym.Env[Any, Any], number: int) -> list[Any]:
    if not isinstance(env.action_space, gym.spaces.Discrete):
        return [env.action_space.sample() for _ in range(number)]
    return [0, 4, 2, 5, 2, 1][:number]  # of the menu: locate, try the first, run the tests, ...


@pytest.mark.parametrize("names", [[], *([name] for name in NAMES), *CHAINS], ids="-".join)
def test_every_wrapper_keeps_its_state_through_a_snapshot(
    names: list[str], env: gym.Env[Any, Any], tmp_path: Path
) -> None:
    for name in names:
        env = wrap(env, name, tmp_path)
    env.action_space.seed(4)
    env.reset(seed=0)
    actions = [*some_actions(env, 5), Stop("enough")]
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
