"""A short run of the fuzzer; longer ones are in tests/stress."""

from fuzzer import fuzz


def test_fuzzed_actions_raise_nothing_and_change_nothing_outside() -> None:
    outcomes = fuzz(num_parsed=500, num_executed=40, seed=10_000_000)["outcomes"]
    assert outcomes["call"] >= 50
    assert outcomes["unreadable"] >= 50
    assert any(name.endswith(": done") for name in outcomes)
