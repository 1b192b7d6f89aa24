import pytest

from millrace import Job, JobFailed, Runner
from millrace.__main__ import main

STEPS = 4


def chain():
    """Jobs that hand a text on, from 0.txt to 4.txt, listed last one first."""
    return [step(n, "concat", separator="") for n in reversed(range(STEPS))]


def step(n, action, **options):
    return Job(f"step-{n}", action, (f"{n}.txt",), (f"{n + 1}.txt",), options=options)


def names(jobs):
    return [job.name for job in jobs]


def write(path, text):
    path.write_text(text, encoding="utf-8")


@pytest.fixture
def folder(tmp_path):
    """A folder in which the chain is up to date."""
    write(tmp_path / "0.txt", "one")
    Runner(chain(), tmp_path).run()
    return tmp_path


@pytest.mark.parametrize("changed", range(STEPS))
def test_a_change_reaches_the_end_in_one_run(folder, changed):
    jobs = chain()
    jobs[STEPS - 1 - changed] = step(changed, "replace", old="one", new="two")
    expected = [f"step-{n}" for n in range(changed, STEPS)]
    assert names(Runner(jobs, folder).plan()) == expected
    assert names(Runner(jobs, folder).run()) == expected
    assert (folder / f"{STEPS}.txt").read_text(encoding="utf-8") == "two"
    assert Runner(jobs, folder).run() == []


def test_a_dry_run_lists_everything_behind_a_change(folder, capsys):
    write(
        folder / "jobs.ini",
        "".join(
            f"[job step-{n}]\naction = concat\ninputs = {n}.txt\noutputs = {n + 1}.txt\n"
            "separator =\n"
            for n in range(STEPS)
        ),
    )
    write(folder / "0.txt", "two")
    arguments = ["-f", str(folder / "jobs.ini")]
    assert main([*arguments, "--dry-run"]) == 0
    assert main(arguments) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[:STEPS] == [f"would run step-{n}" for n in range(STEPS)]
    assert lines[STEPS:] == [f"running step-{n}" for n in range(STEPS)]


def test_a_dry_run_changes_nothing(folder):
    write(folder / "0.txt", "two")
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    runner = Runner(chain(), folder)
    assert runner.plan() == runner.plan()
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def test_an_output_that_comes_out_the_same_stops_the_run(folder):
    jobs = [
        Job("sort", "sort", ("in.txt",), ("sorted.txt",)),
        Job("report", "concat", ("sorted.txt",), ("report.txt",)),
    ]
    write(folder / "in.txt", "b\na\n")
    assert names(Runner(jobs, folder).run()) == ["sort", "report"]
    write(folder / "in.txt", "a\nb\n")
    assert names(Runner(jobs, folder).run()) == ["sort"]
    assert Runner(jobs, folder).run() == []


def test_a_dry_run_lists_jobs_that_a_run_may_leave_alone(folder):
    jobs = [
        Job("sort", "sort", ("in.txt",), ("sorted.txt",)),
        Job("report", "concat", ("sorted.txt",), ("report.txt",)),
    ]
    write(folder / "in.txt", "b\na\n")
    Runner(jobs, folder).run()
    write(folder / "in.txt", "a\nb\n")
    assert names(Runner(jobs, folder).plan()) == ["sort", "report"]


def test_both_arms_of_a_fork_are_joined_once(folder):
    jobs = [
        Job("join", "concat", ("left.txt", "right.txt"), ("joined.txt",)),
        Job("left", "concat", ("base.txt",), ("left.txt",)),
        Job("right", "sort", ("base.txt",), ("right.txt",)),
        Job("base", "sort", ("in.txt",), ("base.txt",)),
    ]
    write(folder / "in.txt", "b\n")
    Runner(jobs, folder).run()
    write(folder / "in.txt", "c\na\n")
    assert names(Runner(jobs, folder).run()) == ["base", "left", "right", "join"]
    assert (folder / "joined.txt").read_text(encoding="utf-8") == "a\nc\na\nc\n"
    assert Runner(jobs, folder).run() == []


def test_jobs_that_only_wait_for_each_other_are_left_alone(folder):
    jobs = [
        Job("first", "concat", ("0.txt",), ("a.txt",)),
        Job("second", "concat", ("other.txt",), ("b.txt",), needs=("first",)),
    ]
    write(folder / "other.txt", "x")
    Runner(jobs, folder).run()
    write(folder / "0.txt", "two")
    assert names(Runner(jobs, folder).plan()) == ["first"]
    assert names(Runner(jobs, folder).run()) == ["first"]


def test_a_run_goes_on_behind_the_job_that_failed(folder):
    jobs = chain()
    broken = [step(1, "replace") if job.name == "step-1" else job for job in jobs]
    write(folder / "0.txt", "two")
    with pytest.raises(JobFailed, match="step-1"):
        Runner(broken, folder).run()
    assert (folder / "4.txt").read_text(encoding="utf-8") == "one"
    assert names(Runner(jobs, folder).run()) == ["step-1", "step-2", "step-3"]
    assert (folder / "4.txt").read_text(encoding="utf-8") == "two"


def test_targets_stop_a_change_where_they_end(folder):
    write(folder / "0.txt", "two")
    assert names(Runner(chain(), folder).plan(["step-1"])) == ["step-0", "step-1"]
    assert names(Runner(chain(), folder).run(["step-1"])) == ["step-0", "step-1"]
    assert (folder / "4.txt").read_text(encoding="utf-8") == "one"


def test_jobs_are_announced_as_they_run(folder):
    heard = []
    write(folder / "0.txt", "two")
    done = Runner(chain(), folder, on_start=heard.append).run()
    assert names(heard) == names(done) == ["step-0", "step-1", "step-2", "step-3"]
