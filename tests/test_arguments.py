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


def test_an_unknown_name_says_what_is_near_and_what_there_is() -> None:
    assert str(unknown_name("agent", "glod", ["gold", "noop"])) == (
        "no agent is called 'glod'; did you mean 'gold'? there are gold, noop"
    )
    assert str(unknown_name("agent", 3, ["noop"])) == "no agent is called 3; there are noop"


def test_a_name_is_found_whatever_its_case_and_underscores() -> None:
    assert "did you mean 'MenuActions'?" in str(unknown_name("w", "menu_actions", ["MenuActions"]))
    assert "did you mean 'nano'?" in str(unknown_name("toolset", "NANO", ["nano"]))


def test_an_unknown_argument_says_what_was_probably_meant() -> None:
    check_arguments("X", ["size"], ["size", "depth"])
    for given, said in (
        ("sizes", "did you mean 'size'?"),
        ("height", "did you mean 'depth'?"),
        ("q", "it has size, depth"),
    ):
        with pytest.raises(InvalidArgumentError) as refused:
            check_arguments("X", [given], ["size", "depth"], elsewhere={"height": "depth"})
        assert str(refused.value) == f"X has no argument {given!r}; {said}"


def test_the_last_line_is_what_errors_quote() -> None:
    assert last_line("a\n b \n\n") == "b"
    assert last_line(" \n", "nothing") == "nothing"
    assert last_line("first\n" + "x" * 1000 + "the end") == "…" + "x" * 293 + "the end"
