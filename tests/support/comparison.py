"""The comparison of what vector envs return."""

from typing import Any

import numpy as np


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
