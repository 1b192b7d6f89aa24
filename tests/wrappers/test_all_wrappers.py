"""Properties of every wrapper of the package."""

import importlib
import inspect
import json
import pkgutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium as gym
import pytest
from episodes import Closing, Env, as_text, play, shell
from gymnasium.envs.registration import EnvSpec
from gymnasium.utils.env_checker import check_env
from gymnasium.wrappers import FlattenObservation, TransformObservation

import coding_gym.wrappers
from coding_gym import Stop
from coding_gym.errors import EpisodeError, InvalidArgumentError, InvalidTaskError
from coding_gym.run_folder import RunFolder

Make = Callable[[], Env]
PARTS = [
    {"name": "net_fraction_fixed", "weight": 0.125},
    {"name": "patch_similarity", "weight": 0.125},
    {"name": "visible_tests", "weight": 0.0625},
]

# Arguments other than the defaults, by wrapper. A test replaces "folder" by a temporary folder.
ARGUMENTS: dict[str, dict[str, Any]] = {
    "MenuActions": {"num_candidates": 5},
    "RecordTrajectory": {"folder": "folder"},
    "ShapedReward": {"parts": PARTS, "gamma": 0.99},
    "TokenBudget": {"max_tokens": 4000, "reserve_tokens": 100},
    "TranscriptObservation": {"max_tokens": 64},
}
NAMES = sorted(ARGUMENTS)
CHAIN = ["TokenBudget", "ShapedReward", "TranscriptObservation", "MenuActions", "RecordTrajectory"]


def arguments_of(name: str, tmp_path: Path) -> dict[str, Any]:
    folder = str(tmp_path / "episodes")
    return {key: folder if value == "folder" else value for key, value in ARGUMENTS[name].items()}


def wrap(env: Env, name: str, tmp_path: Path) -> Env:
    wrapper: Env = getattr(coding_gym.wrappers, name)(env, **arguments_of(name, tmp_path))
    return wrapper


@pytest.fixture
def make(tiny_row: dict[str, Any], closing: Closing) -> Make:
    arguments = {"tasks": [tiny_row], "max_obs_tokens": 128, "challenge": "passed"}
    return lambda: closing(gym.make("CodingRepair-v0", **arguments))


@pytest.fixture
def env(make: Make) -> Env:
    return make()


def test_every_wrapper_is_exported_and_listed_here() -> None:
    names = [module.name for module in pkgutil.iter_modules(coding_gym.wrappers.__path__)]
    wrappers = {
        name
        for module in (importlib.import_module(f"coding_gym.wrappers.{name}") for name in names)
        for name, kind in vars(module).items()
        if isinstance(kind, type) and issubclass(kind, gym.Wrapper)
        if kind.__module__ == module.__name__
    }
    assert sorted(wrappers) == coding_gym.wrappers.__all__ == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_the_spec_makes_an_equal_env_through_json(name: str, make: Make, tmp_path: Path) -> None:
    wrapped = wrap(make(), name, tmp_path)
    assert wrapped.spec is not None
    recorded = wrapped.spec.additional_wrappers[-1]
    parameters = list(inspect.signature(type(wrapped).__init__).parameters.values())[2:]
    assert recorded.name == name
    assert sorted(recorded.kwargs or {}) == sorted(parameter.name for parameter in parameters)
    assert recorded.kwargs == {**(recorded.kwargs or {}), **arguments_of(name, tmp_path)}
    defaults = [p.default for p in parameters if p.default is not p.empty]
    assert json.loads(json.dumps(defaults)) == defaults
    copy = gym.make(EnvSpec.from_json(wrapped.spec.to_json()))
    assert copy.spec == wrapped.spec
    assert type(copy) is type(wrapped)
    assert copy.observation_space == wrapped.observation_space
    assert copy.action_space == wrapped.action_space
    copy.close()


@pytest.mark.parametrize("name", NAMES)
def test_a_wrapper_passes_all_values_of_a_step_on(name: str, env: Env, tmp_path: Path) -> None:
    env = wrap(env, name, tmp_path)
    observation, info = env.reset(seed=0)
    assert (observation in env.observation_space, info["turn"]) == (True, 0)
    action = 0 if name == "MenuActions" else "Let me think."  # 0 runs the tests
    observation, reward, terminated, truncated, info = env.step(action)
    assert observation in env.observation_space
    assert (float(reward), terminated, truncated) == (0.0, False, False)
    assert (info["turn"], info["stop_reason"], info["error"]) == (1, None, "")
    observation, reward, terminated, truncated, info = env.step(Stop("enough"))
    assert observation in env.observation_space
    assert (float(reward), terminated, truncated) == (0.0, False, True)
    assert (info["turn"], info["stop_reason"]) == (2, "stopped")
    assert info["grade"].reason == "empty_patch"
    added = [part["name"] for part in PARTS] if name == "ShapedReward" else []
    assert set(info["reward_parts"]) == {"resolved", *added}


@pytest.mark.parametrize("name", NAMES)
def test_other_environments_are_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidArgumentError, match="CartPole"):
        wrap(gym.make("CartPole-v1"), name, tmp_path)


@pytest.mark.parametrize("name", NAMES)
def test_options_of_another_type_are_refused(name: str, env: Env, tmp_path: Path) -> None:
    options: Any = 7
    with pytest.raises(InvalidArgumentError):
        wrap(env, name, tmp_path).reset(options=options)


@pytest.mark.parametrize("name", ["MenuActions", "TranscriptObservation"])
def test_other_keys_of_the_observation_stay(name: str, env: Env, tmp_path: Path) -> None:
    space = gym.spaces.Dict({**env.observation_space.spaces, "more": gym.spaces.Discrete(2)})  # type: ignore[attr-defined]
    wrapped = wrap(TransformObservation(env, lambda o: {**o, "more": 1}, space), name, tmp_path)
    observation, _ = wrapped.reset()
    assert observation["more"] == 1
    assert {*space.spaces} <= {*observation} == {*wrapped.observation_space.spaces}  # type: ignore[attr-defined]
    assert observation in wrapped.observation_space
    with pytest.raises(InvalidArgumentError, match="Box"):
        wrap(FlattenObservation(env), name, tmp_path)


@pytest.mark.filterwarnings("ignore:.*is different from the unwrapped version")
@pytest.mark.parametrize("name", NAMES)
def test_gymnasium_checker_finds_nothing(name: str, env: Env, tmp_path: Path) -> None:
    wrapped = wrap(env.unwrapped, name, tmp_path)
    check_env(wrapped, skip_render_check=True)
    assert wrapped.reset(seed=1)[0] in wrapped.observation_space
    wrapped.close()


@pytest.mark.parametrize("names", [[name] for name in NAMES] + [CHAIN], ids="-".join)
def test_no_episode_runs_after_a_refused_task(
    names: list[str], env: Env, tmp_path: Path, tiny_row: dict[str, Any]
) -> None:
    for name in names:
        env = wrap(env, name, tmp_path)
    env.reset(seed=0)
    env.step(actions_of(names)[2])
    other = tiny_row | {"instance_id": "other", "patch": "", "language": "rust"}
    if {"MenuActions", "ShapedReward"}.isdisjoint(names):
        assert env.reset(options={"task": other})[1]["task_id"] == "other"
        return
    with pytest.raises((InvalidTaskError, InvalidArgumentError)):
        env.reset(options={"task": other})
    with pytest.raises(EpisodeError):
        env.step(actions_of(names)[2])
    assert env.reset(seed=0)[1]["turn"] == 0
    if "RecordTrajectory" in names:
        env.step(Stop("enough"))
        (record,) = RunFolder.open(tmp_path / "episodes").trajectories()
        assert len(record.turns) == 1


def actions_of(names: list[str]) -> list[Any]:
    """Returns five actions and a `Stop` for an env with these wrappers."""
    if "MenuActions" in names:
        return [0, 2, 0, 3, 0, Stop("enough")]  # 2 and 3 apply candidates
    edit = "echo '# note' | tee -a /tmp/note >> shapes.py"
    commands = ["cat shapes.py", "false", edit, "cat shapes.py", "cat shapes.py /tmp/note"]
    return [*map(shell, commands), Stop("enough")]


@pytest.mark.parametrize(
    "names",
    [
        [],
        ["TokenBudget"],
        ["RecordTrajectory", "TranscriptObservation"],
        pytest.param(CHAIN, marks=pytest.mark.slow),
    ],
    ids=lambda names: "-".join(names[-2:]),
)
def test_snapshots_keep_all_state(names: list[str], env: Env, tmp_path: Path) -> None:
    for name in names:
        env = wrap(env, name, tmp_path)
    env.reset(seed=0)
    actions = actions_of(names)
    play(env, actions[:2])
    last = env.step(actions[2])
    snapshot = coding_gym.snapshot(env)
    copy = gym.make(env.spec)
    expected = play(env, actions[3:])

    for restored in (env, copy):
        assert as_text(*coding_gym.restore(restored, snapshot)) == as_text(last[0], last[4])
        assert play(restored, actions[3:]) == expected
        restored.close()
    folder = tmp_path / "episodes"
    records = [
        [(turn.action, turn.calls, turn.reward, turn.reward_parts) for turn in episode.turns]
        for episode in (RunFolder.open(folder).trajectories() if folder.exists() else ())
    ]
    assert len(records) == (3 if "RecordTrajectory" in names else 0)
    assert all(record == records[0] and len(record) == 6 for record in records)
