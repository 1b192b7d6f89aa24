"""Durations that other languages' runners print: gone from summaries, and from nothing else."""

from coding_gym.text.truncate import scrub_runner_times


def test_a_summary_loses_its_duration() -> None:
    for line, scrubbed in [
        (
            "    Finished test [unoptimized + debuginfo] target(s) in 1m 02s",
            "    Finished test [unoptimized + debuginfo] target(s) in 0.00s",
        ),
        (
            "test result: FAILED. 7 passed; 1 failed; 0 ignored; 0 filtered out; finished in 3.12s",
            "test result: FAILED. 7 passed; 1 failed; 0 ignored; 0 filtered out; finished in 0.00s",
        ),
        ("Time: 0.142", "Time: 0"),
        ("Time: 1,234.5\r", "Time: 0\r"),
        ("  duration_ms: 16.346988", "  duration_ms: 0"),
        ("# duration_ms 51.2", "# duration_ms 0"),
        ("\u2139 duration_ms 51.2", "\u2139 duration_ms 0"),
        ("  ✔ is what find reads (1.5ms)", "  ✔ is what find reads (0ms)"),
        ("✖ a link (20ms) # TODO", "✖ a link (0ms) # TODO"),
        ("    --- FAIL: TestSum/of_none (0.31s)", "    --- FAIL: TestSum/of_none (0.00s)"),
        ("ok  \texample.org/sum\t0.004s", "ok  \texample.org/sum\t0.000s"),
    ]:
        assert scrub_runner_times(f"before\n{line}\nafter") == f"before\n{scrubbed}\nafter", line


def test_what_only_looks_like_one_stays() -> None:
    for line in [
        "it was finished in 3.12s",
        "Time: 3.1 s",
        "Time: now",
        "> Time: 0.142",
        "duration_ms = 51.2",
        "✔ done in (20ms) or so",
        "ok, that took\t0.004s",
        "target(s) in 3.1s",
    ]:
        assert scrub_runner_times(line) == line, line
