"""A run of the fuzzer over every toolset; longer ones: ``python benchmarks/fuzz_actions.py``."""

import subprocess
import sys

from fuzzer import FOLDER, fuzz

from coding_gym.tools import toolset_names


def test_fuzzed_actions_of_every_toolset_raise_and_change_nothing() -> None:
    num_parsed = 3000
    row = fuzz(num_parsed=num_parsed, num_executed=40 * len(toolset_names()), seed=20_000_000)
    outcomes = row["outcomes"]
    assert outcomes["call"] >= num_parsed // 10
    assert outcomes["unreadable"] >= num_parsed // 10
    assert {name for name in toolset_names() if f"{name}: done" in outcomes} == set(toolset_names())


def test_actions_follow_from_seed_and_index() -> None:
    code = "import fuzzing; print([fuzzing.action(7, n).text for n in range(50)])"
    argv = [sys.executable, "-c", code]
    first, second = (
        subprocess.run(argv, cwd=FOLDER, capture_output=True, check=True).stdout for _ in range(2)
    )
    assert first == second
