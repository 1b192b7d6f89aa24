import math

import numpy as np
import pytest

from coding_gym.arguments import at_least_one, check_arguments, positive_seconds, unknown_name
from coding_gym.errors import InvalidArgumentError, last_line


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
    with pytest.raises(
        InvalidArgumentError,
    ):
        positive_seconds("t", value)


def test_an_unknown_name_has_its_neighbour_and_the_known_ones() -> None:
    message = str(unknown_name("agent", "glod", ["gold", "noop"]))
    assert all(name in message for name in ("'glod'", "'gold'", "gold, noop"))
    assert "'MenuActions'" in str(unknown_name("w", "menu_actions", ["MenuActions"]))
    assert "noop" in str(unknown_name("agent", 3, ["noop"]))


@pytest.mark.parametrize(
    ("argument", "named"), [("sizes", "'size'"), ("height", "'depth'"), ("q", "size, depth")]
)
def test_an_unknown_argument_has_its_neighbour(argument: str, named: str) -> None:
    check_arguments("X", ["size"], ["size", "depth"])
    with pytest.raises(InvalidArgumentError, match=named):
        check_arguments("X", [argument], ["size", "depth"], elsewhere={"height": "depth"})


def test_the_last_line_is_what_errors_quote() -> None:
    assert last_line("a\n b \n\n") == "b"
    assert last_line(" \n", "nothing") == "nothing"
    assert last_line("first\n" + "x" * 1000 + "the end") == "…" + "x" * 293 + "the end"
