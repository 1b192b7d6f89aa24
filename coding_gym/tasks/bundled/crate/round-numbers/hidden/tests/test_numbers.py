import pytest

import crate


@pytest.fixture
def kept(tmp_path):
    def keep(value):
        path = tmp_path / "a.crate"
        with crate.create(path) as writer:
            writer.add("value", value)
            writer.add("behind", "this stands behind it")
        reader = crate.load(path)
        assert reader["behind"] == "this stands behind it"
        return reader["value"]

    return keep


@pytest.mark.parametrize("number", [64, 8192, 8200, 8255, 1_048_576, 2**27 + 1, 2**62 + 5, 2**69])
def test_round_numbers(kept, number):
    assert kept(number) == number


@pytest.mark.parametrize("number", [-8193, -8250, -1_048_577, -(2**27) - 1])
def test_round_numbers_below_zero(kept, number):
    assert kept(number) == number


@pytest.mark.parametrize("number", [0, 63, -64, 65, 127, 128, -128, 8191, 8256, 2**63, -(2**64)])
def test_other_numbers(kept, number):
    assert kept(number) == number


def test_every_number_up_to_ten_thousand(kept):
    numbers = list(range(-10_000, 10_001))
    assert kept(numbers) == numbers


@pytest.mark.parametrize("length", [127, 128, 129, 16_383, 16_384, 16_400, 16_512])
def test_lengths_of_texts_and_bytes(kept, length):
    value = ["x" * length, b"y" * length]
    assert kept(value) == value


def test_lengths_of_lists_and_dictionaries(kept):
    value = [[None] * 128, {str(number): number for number in range(128)}]
    assert kept(value) == value


def test_many_shared_texts(kept):
    texts = [f"text {number}" for number in range(200)]
    assert kept(texts * 2) == texts * 2
