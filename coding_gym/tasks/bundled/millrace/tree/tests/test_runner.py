import pytest

from millrace import Job, JobFailed, Runner
from millrace.__main__ import main

CLEAN = Job("clean", "replace", ("raw.txt",), ("clean.txt",), options={"old": "bad", "new": "good"})
TABLE = Job("table", "sort", ("clean.txt",), ("out/table.txt",), options={"unique": "yes"})
REPORT = Job("report", "concat", ("head.txt", "out/table.txt"), ("report.txt",))
JOBS = [CLEAN, TABLE, REPORT]


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "raw.txt").write_text("pear\nbad apple\npear\n", encoding="utf-8")
    (tmp_path / "head.txt").write_text("fruit:\n", encoding="utf-8")
    return tmp_path


def names(jobs):
    return [job.name for job in jobs]


def test_the_first_run_runs_everything(folder):
    assert names(Runner(JOBS, folder).run()) == ["clean", "table", "report"]
    assert (folder / "report.txt").read_text(encoding="utf-8") == "fruit:\ngood apple\npear\n"


def test_nothing_runs_twice(folder):
    Runner(JOBS, folder).run()
    assert Runner(JOBS, folder).run() == []
    assert Runner(JOBS, folder).plan() == []


def test_rewriting_a_file_as_it_was_is_not_a_change(folder):
    Runner(JOBS, folder).run()
    (folder / "raw.txt").write_text("pear\nbad apple\npear\n", encoding="utf-8")
    assert Runner(JOBS, folder).run() == []


def test_one_run_brings_everything_up_to_date(folder):
    Runner(JOBS, folder).run()
    (folder / "raw.txt").write_text("fig\n", encoding="utf-8")
    Runner(JOBS, folder).run()
    assert (folder / "report.txt").read_text(encoding="utf-8") == "fruit:\nfig\n"


def test_only_what_reads_a_changed_file_runs(folder):
    Runner(JOBS, folder).run()
    (folder / "head.txt").write_text("all fruit:\n", encoding="utf-8")
    assert names(Runner(JOBS, folder).plan()) == ["report"]
    assert names(Runner(JOBS, folder).run()) == ["report"]


def test_changed_options_are_a_change(folder):
    Runner(JOBS, folder).run()
    louder = Job("clean", "replace", CLEAN.inputs, CLEAN.outputs, options={"old": "x"})
    assert names(Runner([louder], folder).run()) == ["clean"]


@pytest.mark.parametrize("damage", ["edit", "delete"])
def test_damaged_outputs_are_made_again(folder, damage):
    Runner(JOBS, folder).run()
    output = folder / "report.txt"
    output.unlink()
    if damage == "edit":
        output.write_text("scribble", encoding="utf-8")
    assert names(Runner(JOBS, folder).run()) == ["report"]
    assert output.read_text(encoding="utf-8").startswith("fruit:")


def test_targets_limit_the_run(folder):
    assert names(Runner(JOBS, folder).run(["table"])) == ["clean", "table"]
    assert not (folder / "report.txt").exists()


def test_force_runs_what_is_up_to_date(folder):
    Runner(JOBS, folder).run()
    assert names(Runner(JOBS, folder).run(["table"], force=True)) == ["clean", "table"]


def test_a_failing_job_ends_the_run_and_is_tried_again(folder):
    Runner(JOBS, folder).run()
    (folder / "head.txt").unlink()
    with pytest.raises(JobFailed, match="report: "):
        Runner(JOBS, folder).run()
    (folder / "head.txt").write_text("fruit:\n", encoding="utf-8")
    assert names(Runner(JOBS, folder).run()) == ["report"]


def test_a_damaged_state_file_only_costs_time(folder):
    Runner(JOBS, folder).run()
    (folder / ".millrace.json").write_text("{", encoding="utf-8")
    assert len(Runner(JOBS, folder).run()) == 3


def test_the_command_line(folder, capsys):
    (folder / "jobs.ini").write_text(
        "[job n]\naction = count\ninputs = raw.txt\noutputs = n.txt\n", encoding="utf-8"
    )
    arguments = ["-f", str(folder / "jobs.ini")]
    assert main([*arguments, "--dry-run"]) == 0
    assert main(arguments) == 0
    assert main(arguments) == 0
    assert capsys.readouterr().out == "would run n\nrunning n\nup to date\n"
    assert (folder / "n.txt").read_text(encoding="utf-8") == "raw.txt 3 4\n"
    assert main([*arguments, "nope"]) == 1
    assert "no job called nope" in capsys.readouterr().err
