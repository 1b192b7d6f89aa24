import doctest
import subprocess
import sys
from pathlib import Path

import pytest

from coding_gym.text import truncate
from coding_gym.text.truncate import scrub_runner_times


def rule(summary: str, width: int = 80) -> str:
    """A summary between rules, drawn as pytest's terminal writer does."""
    marks = "=" * max((width - len(summary) - 2) // 2, 1)
    line = f"{marks} {summary} {marks}"
    return line + "=" * (len(line) < width)


def test_the_documented_examples_are_true() -> None:
    result = doctest.testmod(truncate)
    assert (result.failed, result.attempted > 4) == (0, True)


def test_the_same_summary_reads_the_same_however_long_it_took() -> None:
    for summary in [
        "3 passed",
        "1 failed, 2 passed, 1 skipped, 1 xfailed, 2 warnings",
        "no tests ran",
        "2 errors",
        "1 passed, 3 deselected, 1 xpassed",
        "4 tests collected",
        "2/5 tests collected (3 deselected)",
        "no tests collected, 1 error",
    ]:
        times = ["0.01s", "9.87s", "12.34s", "75.20s (0:01:15)"]
        for render in (str, rule):
            scrubbed = {scrub_runner_times(render(f"{summary} in {time}")) for time in times}
            assert scrubbed == {render(f"{summary} in 0.00s")}


def test_summaries_of_other_languages_lose_their_durations() -> None:
    for line, time, zero in [
        ("    Finished test [unoptimized + debuginfo] target(s) in 1m 02s", "1m 02s", "0.00s"),
        ("test result: FAILED. 7 passed; 1 failed; finished in 3.12s", "3.12s", "0.00s"),
        ("Time: 0.142", "0.142", "0"),
        ("Ran 12 tests in 3.141s", "3.141s", "0.000s"),
        ("Time: 1,234.5\r", "1,234.5", "0"),
        ("  duration_ms: 16.346988", "16.346988", "0"),
        ("# duration_ms 51.2", "51.2", "0"),
        ("\u2139 duration_ms 51.2", "51.2", "0"),
        ("  ✔ is what find reads (1.5ms)", "1.5ms", "0ms"),
        ("✖ a link (20ms) # TODO", "20ms", "0ms"),
        ("    --- FAIL: TestSum/of_none (0.31s)", "0.31s", "0.00s"),
        ("ok  \texample.org/sum\t0.004s", "0.004s", "0.000s"),
    ]:
        scrubbed = line.replace(time, zero)
        assert scrub_runner_times(f"before\n{line}\nafter") == f"before\n{scrubbed}\nafter", line


@pytest.mark.parametrize(
    "line",
    [
        "the suite had 3 passed in 0.12s on my machine",
        "print('3 passed in 0.12s')",
        "3 cats in 0.12s",
        "Time: 3.1 s",
        "> Time: 0.142",
        "duration_ms = 51.2",
        "✔ done in (20ms) or so",
        "3 passed in 0.1234s",
        "+3 passed in 0.12s",
        "    3 passed in 0.12s",
        "0.05s call     tests/test_a.py::test_b",
    ],
)
def test_other_lines_are_left_alone(line: str) -> None:
    assert scrub_runner_times(f"before\n{line}\nafter") == f"before\n{line}\nafter"


def test_a_real_pytest_run_reads_the_same_twice(tmp_path: Path) -> None:
    (tmp_path / "test_a.py").write_text(
        "import threading\ndef test_a(): threading.Event().wait(0.03)\ndef test_b(): assert False\n"
    )
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--tb=no", "test_a.py"]
    for extra in ([], ["-q"]):
        run = subprocess.run(
            [*command, *extra], cwd=tmp_path, capture_output=True, text=True, timeout=60
        )
        last = run.stdout.splitlines()[-1]
        assert "1 failed, 1 passed in 0.00s" not in last
        assert "1 failed, 1 passed in 0.00s" in scrub_runner_times(last)
        assert len(scrub_runner_times(last)) == len(last)
