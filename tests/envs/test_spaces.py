"""The action space: any Unicode."""

from coding_gym.envs.spaces import ActionText


def test_any_text_is_an_action() -> None:
    space = ActionText("bash")
    for text in ("", "é", "中🙂", space.sample()):
        assert text in space
    assert 3 not in space


def test_spaces_are_equal_by_what_they_draw() -> None:
    assert ActionText("nano") == ActionText() != ActionText("bash")
