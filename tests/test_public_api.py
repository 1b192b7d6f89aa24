import gymnasium as gym

import coding_gym


def test_the_public_names_are_sorted_and_exist() -> None:
    assert coding_gym.__all__ == sorted(coding_gym.__all__)
    assert all(hasattr(coding_gym, name) for name in coding_gym.__all__)


def test_the_env_is_registered_without_a_time_limit() -> None:
    spec = gym.spec("CodingRepair-v0")
    assert spec.max_episode_steps is None
