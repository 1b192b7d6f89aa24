"""Spaces of text: any Unicode, which no array of fixed size holds."""

import pytest
from gymnasium import spaces

from coding_gym.envs.spaces import ActionText, AnyText


@pytest.mark.parametrize("space", [AnyText(64), ActionText("bash")])
def test_texts_of_any_characters_flatten_to_themselves(space: AnyText) -> None:
    for text in ("", "é", "中🙂", space.sample()):
        assert text in space
        assert spaces.unflatten(space, spaces.flatten(space, text)) == text
    both = spaces.Dict({"text": space, "number": spaces.Discrete(3)})
    value = {"text": "é", "number": 2}
    assert spaces.unflatten(both, spaces.flatten(both, value)) == value
    assert spaces.flatten_space(space) == space
    for whole in (space, both):
        with pytest.raises(ValueError, match="flatten"):
            spaces.flatdim(whole)


def test_spaces_are_equal_by_what_they_hold_and_draw() -> None:
    assert AnyText(3) == AnyText(3) != AnyText(4)
    assert ActionText("nano") == ActionText() != ActionText("bash")
    assert AnyText() != ActionText()
    assert hash(ActionText()) == hash(ActionText("nano"))
    assert "four" not in AnyText(3)
