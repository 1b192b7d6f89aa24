"""The action space: any Unicode, which no array of fixed size holds."""

import pytest
from gymnasium import spaces

from coding_gym.envs.spaces import ActionText


def test_any_text_is_an_action_and_no_array() -> None:
    space = ActionText("bash")
    for text in ("", "é", "中🙂", space.sample()):
        assert text in space
    assert 3 not in space
    for flat in (spaces.flatdim, spaces.flatten_space):
        with pytest.raises(ValueError, match="flatten"):
            flat(space)


def test_spaces_are_equal_by_what_they_draw() -> None:
    assert ActionText("nano") == ActionText() != ActionText("bash")
    assert hash(ActionText()) == hash(ActionText("nano"))
