"""Methods and attributes of the single envs."""

from collections.abc import Callable

import pytest
from moves import FIX, TRUE

from coding_gym.errors import InvalidArgumentError
from coding_gym.vector import CodingRepairVectorEnv

Make = Callable[..., CodingRepairVectorEnv]
CLIP = {"name": "gymnasium.wrappers:ClipReward", "kwargs": {"min_reward": 0.1, "max_reward": 0.5}}


def test_calls_reach_wrappers_and_envs(make: Make) -> None:
    vec = make(2, wrappers=[CLIP])
    vec.reset(options={"task_id": "shapes-1"})
    vec.step([FIX, TRUE])
    patches = vec.call("patch")
    assert ["shapes.py" in patch.text for patch in patches] == [True, False]
    assert [task.task_id for task in vec.get_attr("task")] == ["shapes-1", "shapes-1"]
    assert vec.call("class_name") == ("ClipReward", "ClipReward")
    assert vec.call("get_wrapper_attr", "has_reset") == (True, True)


def test_attributes_are_set_for_all_or_for_each(make: Make) -> None:
    vec = make(2)
    vec.set_attr("note", "for all")
    assert vec.get_attr("note") == ("for all", "for all")
    vec.set_attr("note", ["first", "second"])
    assert vec.get_attr("note") == ("first", "second")
    with pytest.raises(InvalidArgumentError, match="one value or a list of 2, got 3"):
        vec.set_attr("note", (1, 2, 3))


def test_rendering_gives_a_transcript_for_each(make: Make) -> None:
    vec = make(2, render_mode="ansi")
    vec.reset(seed=0)
    assert [("area(3, 5)" in text) for text in vec.render()] == [True, True]


def test_unknown_names_and_what_is_for_all_at_once_are_refused(make: Make) -> None:
    vec = make(2)
    with pytest.raises(AttributeError):
        vec.call("fly")
    for name in ("step", "reset", "close"):
        with pytest.raises(InvalidArgumentError, match=f"own {name}"):
            vec.call(name)
