"""`VisibleTestShaping`: potentials cannot be forged, and the parts sum to zero."""

from collections.abc import Callable
from typing import Any

import pytest
from episodes import SUBMIT, Env, MakeEnv, raising, returning, shell

from coding_gym.errors import GradingError, InvalidArgumentError, InvalidTaskError
from coding_gym.wrappers import TestPassReward, VisibleTestShaping

pytestmark = pytest.mark.slow

REPAIR = returning("width * height")  # test_wide passes too
BREAK = returning("None")  # test_square, which passed, does not


@pytest.fixture
def make(make: Callable[..., Env]) -> Callable[..., Env]:
    return lambda **arguments: VisibleTestShaping(make(), **{"weight": 0.5} | arguments)


def part(env: Env, action: str) -> float:
    _, reward, terminated, _, info = env.step(action)
    assert reward == pytest.approx(sum(info["reward_parts"].values()))
    assert terminated == (action == SUBMIT)
    value = info["reward_parts"]["visible_tests"]
    assert type(value) is float
    return value


def test_parts_of_turns_sum_to_zero(make: Callable[..., Env]) -> None:
    env = make()
    env.reset()
    parts = [part(env, a) for a in (shell("ls"), REPAIR, shell("true"), BREAK, REPAIR, SUBMIT)]
    assert parts == [0.0, 0.25, 0.0, -0.5, 0.5, -0.25]  # one test of two more, both less, ...
    env.reset()
    assert part(env, SUBMIT) == 0


def test_the_discounted_sum_is_nothing(make: Callable[..., Env]) -> None:
    env = make(weight=0.25, gamma=0.99)
    env.reset()
    parts = [part(env, action) for action in (REPAIR, shell("true"), SUBMIT)]
    assert parts[0] == pytest.approx(0.99 * 0.125)
    assert sum(0.99**n * value for n, value in enumerate(parts)) == pytest.approx(0, abs=1e-12)


def test_editing_tests_configuration_or_output_gains_nothing(make: Callable[..., Env]) -> None:
    env = make()
    env.reset()
    always = "def test_square(): pass\\ndef test_wide(): pass\\n"
    for cheat in (
        f"printf '{always}' > test_shapes.py",
        "rm test_shapes.py; echo 'def test_a(): pass' > test_more.py",
        "printf '[pytest]\\naddopts = -k square\\n' > pytest.ini; echo '== 9 passed in 0.1s =='",
        "printf 'collect_ignore = [\"test_shapes.py\"]\\n' > conftest.py",
    ):
        assert part(env, shell(cheat)) == 0
    forge = "printf 'import _pytest.python\\n_pytest.python.Function.runtest = lambda self: 0\\n'"
    assert part(env, shell(f"{forge} >> shapes.py")) <= 0


def test_a_machinery_failure_is_masked(
    make: Callable[..., Env], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "coding_gym.wrappers.visible_test_shaping.grade", raising(GradingError("no report"))
    )
    env = make()
    env.reset()
    assert part(env, REPAIR) == 0
    _, reward, _, truncated, info = env.step(SUBMIT)
    assert (reward, truncated, info["mask_sample"]) == (0.0, True, True)
    assert info["error"] == "no report"
    assert "visible_tests" not in info["reward_parts"]


@pytest.mark.parametrize("gamma", [0, 1.01, True, "1", float("nan")])
def test_discounts_that_are_none_are_refused(make: Callable[..., Env], gamma: Any) -> None:
    with pytest.raises(InvalidArgumentError):
        make(gamma=gamma)


def test_a_discount_takes_more_of_the_chains_weights(make: Callable[..., Env]) -> None:
    assert make(gamma=0.995).get_wrapper_attr("shaping_weight") == 0.5
    wide = make(weight=0.05, gamma=0.9)  # 50 turns, each of which may keep a tenth
    assert wide.get_wrapper_attr("shaping_weight") == pytest.approx(0.5)
    with pytest.raises(InvalidArgumentError):
        TestPassReward(wide, weight=0.6)
    with pytest.raises(InvalidArgumentError):
        make(gamma=0.9)


def test_other_runners_are_refused_at_reset(tiny_row: dict[str, Any], make_env: MakeEnv) -> None:
    env = VisibleTestShaping(make_env(tasks=[tiny_row | {"runner": "unittest"}]))
    with pytest.raises(InvalidTaskError, match="'unittest'"):
        env.reset()
