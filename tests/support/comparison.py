"""The comparison of what environments return."""

import json
from collections.abc import Iterable
from typing import Any

import numpy as np

from coding_gym import Grade


def assert_same(left: Any, right: Any) -> None:
    """Compares arrays in dicts in tuples, types and the order of keys included."""
    assert type(left) is type(right)
    if isinstance(left, dict):
        assert list(left) == list(right)
        for key in left:
            assert_same(left[key], right[key])
    elif isinstance(left, tuple):
        for one, other in zip(left, right, strict=True):
            assert_same(one, other)
    elif isinstance(left, np.ndarray):
        assert left.dtype == right.dtype
        assert left.tolist() == right.tolist()
    else:
        assert left == right


def play(env: Any, actions: Iterable[Any]) -> list[str]:
    """Plays actions; returns all that came back, as text."""
    return [as_text(*env.step(action)) for action in actions]


def as_text(observation: Any, *others: Any) -> str:
    """Returns text that is equal only for equal bytes, but for the seconds of a budget."""
    if isinstance(observation, dict):
        observation = {k: (str(value.dtype), value.tolist()) for k, value in observation.items()}
    *rest, info = others
    budget = info["budget"] | {"seconds": None}  # a clock's
    return json.dumps([observation, *rest, info | {"budget": budget}], default=Grade.to_json)
