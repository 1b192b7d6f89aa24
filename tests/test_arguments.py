import math

import numpy as np
import pytest

from coding_gym.arguments import at_least_one, check_arguments, positive_seconds
from coding_gym.errors import InvalidArgumentError


@pytest.mark.parametrize("value", [0, -1, 1.0, True, "1", None])
def test_a_count_is_an_integer_of_at_least_one(value: object) -> None:
    assert at_least_one("n", 1) == 1
    assert type(at_least_one("n", np.int64(3))) is int
    with pytest.raises(InvalidArgumentError):
        at_least_one("n", value)


@pytest.mark.parametrize("value", [0, -0.1, math.inf, math.nan, 1e10, 10**400, True, "1", None])
def test_a_time_limit_is_a_finite_number_above_zero(value: object) -> None:
    assert positive_seconds("t", 1) == 1.0
    assert type(positive_seconds("t", np.float32(0.5))) is float
    with pytest.raises(InvalidArgumentError):
        positive_seconds("t", value)


@pytest.mark.parametrize(
    ("argument", "named"), [("sizes", "'size'"), ("height", "'depth'"), ("q", "size, depth")]
)
def test_an_unknown_argument_has_its_neighbour(argument: str, named: str) -> None:
    check_arguments("X", ["size"], ["size", "depth"])
    with pytest.raises(InvalidArgumentError, match=named):
        check_arguments("X", [argument], ["size", "depth"], elsewhere={"height": "depth"})
