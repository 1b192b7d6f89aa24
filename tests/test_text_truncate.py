import doctest

from coding_gym.text import truncate


def test_the_documented_examples_are_true() -> None:
    result = doctest.testmod(truncate)
    assert (result.failed, result.attempted) == (0, 4)
