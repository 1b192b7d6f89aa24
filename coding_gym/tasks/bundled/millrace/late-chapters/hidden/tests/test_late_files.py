import pytest

from millrace import CycleError, Runner, load_jobs
from millrace.__main__ import main

BOOK = """
[job book]
action = concat
inputs = {inputs}
outputs = book.txt
separator = /
"""
CHAPTER = """
[job {name}]
action = replace
inputs = drafts/{name}.txt
outputs = chapters/{name}.txt
old = draft
new = chapter
"""


def chapters(*names):
    return "".join(CHAPTER.format(name=name) for name in names)


def book(inputs="chapters/*.txt"):
    return BOOK.format(inputs=inputs)


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "drafts").mkdir()
    for name in "abc":
        write(tmp_path, f"drafts/{name}.txt", f"draft {name}")
    return tmp_path


def write(folder, name, text):
    (folder / name).write_text(text, encoding="utf-8")


def runner(folder, text):
    write(folder, "jobs.ini", text)
    return Runner(load_jobs(folder / "jobs.ini"), folder)


def run(folder, text, *targets):
    return [job.name for job in runner(folder, text).run(targets)]


def plan(folder, text, *targets):
    return [job.name for job in runner(folder, text).plan(targets)]


def made(folder, name="book.txt"):
    return (folder / name).read_text(encoding="utf-8")


def test_a_fresh_checkout_takes_one_run(folder):
    text = book() + chapters("b", "a")
    assert run(folder, text) == ["b", "a", "book"]
    assert made(folder) == "chapter a/chapter b"
    assert run(folder, text) == []


def test_the_order_of_the_jobs_in_the_file_does_not_matter(folder):
    assert run(folder, chapters("a") + book() + chapters("b")) == ["a", "b", "book"]
    assert made(folder) == "chapter a/chapter b"


def test_a_further_file_is_read_in_the_run_that_writes_it(folder):
    run(folder, book() + chapters("a", "c"))
    text = book() + chapters("a", "c", "b")
    assert run(folder, text) == ["b", "book"]
    assert made(folder) == "chapter a/chapter b/chapter c"
    assert run(folder, text) == []


def test_a_changed_file_is_read_in_the_run_that_writes_it(folder):
    text = book() + chapters("a", "b")
    run(folder, text)
    write(folder, "drafts/b.txt", "draft B")
    assert plan(folder, text) == ["b", "book"]
    assert run(folder, text) == ["b", "book"]
    assert made(folder) == "chapter a/chapter B"
    assert run(folder, text) == []


def test_a_file_that_comes_out_the_same_leaves_the_reader_alone(folder):
    text = book() + chapters("a", "b")
    run(folder, text)
    write(folder, "drafts/b.txt", "chapter b")
    assert run(folder, text) == ["b"]
    assert plan(folder, text) == []


def test_a_target_brings_the_jobs_behind_its_pattern(folder):
    text = book("chapters/a*.txt") + chapters("a", "b")
    assert plan(folder, text, "book") == ["a", "book"]
    assert run(folder, text, "book") == ["a", "book"]
    assert made(folder) == "chapter a"
    assert not (folder / "chapters" / "b.txt").exists()


def test_a_dry_run_foresees_files_that_are_not_there(folder, capsys):
    run(folder, book() + chapters("a"))
    text = book() + chapters("a", "b")
    assert plan(folder, text) == ["b", "book"]
    write(folder, "jobs.ini", text)
    assert main(["-f", str(folder / "jobs.ini"), "--dry-run"]) == 0
    assert capsys.readouterr().out == "would run b\nwould run book\n"
    assert made(folder) == "chapter a"


def test_a_dry_run_lists_no_reader_of_other_files(folder):
    text = book("chapters/*.md") + chapters("a")
    run(folder, text)
    write(folder, "drafts/a.txt", "draft A")
    assert plan(folder, text) == ["a"]


def test_patterns_may_follow_each_other(folder):
    text = (
        "[job all]\naction = concat\ninputs = lists/*\noutputs = all.txt\nseparator = /\n"
        "[job list]\naction = count\ninputs = chapters/*.txt\noutputs = lists/count\n"
    ) + chapters("a", "b")
    assert run(folder, text) == ["a", "b", "list", "all"]
    assert made(folder, "all.txt") == "a.txt 1 2\nb.txt 1 2\n"
    write(folder, "drafts/b.txt", "draft of b")
    assert plan(folder, text) == ["b", "list", "all"]
    assert run(folder, text) == ["b", "list", "all"]
    assert made(folder, "all.txt") == "a.txt 1 2\nb.txt 1 3\n"


def test_files_that_were_there_and_files_that_are_written_are_joined(folder):
    (folder / "chapters").mkdir()
    write(folder, "chapters/aa.txt", "by hand")
    text = book("drafts/c.txt\n    chapters/*.txt") + chapters("a", "b")
    assert run(folder, text) == ["a", "b", "book"]
    assert made(folder) == "draft c/chapter a/by hand/chapter b"
    (folder / "chapters" / "aa.txt").unlink()
    assert run(folder, text) == ["book"]
    assert made(folder) == "draft c/chapter a/chapter b"


def test_one_runner_may_run_again(folder):
    again = runner(folder, book() + chapters("a"))
    assert [job.name for job in again.run()] == ["a", "book"]
    write(folder, "chapters/z.txt", "by hand")
    assert [job.name for job in again.plan()] == ["book"]
    assert [job.name for job in again.run()] == ["book"]
    assert made(folder) == "chapter a/by hand"
    assert again.run() == []


def test_jobs_that_wait_for_each_other_by_patterns_are_refused(folder):
    text = (
        "[job x]\naction = concat\ninputs = y/*\noutputs = x/1\n"
        "[job y]\naction = concat\ninputs = x/*\noutputs = y/1\n"
    )
    with pytest.raises(CycleError, match="x -> y -> x"):
        run(folder, text)


def test_a_job_waits_for_no_output_of_its_own(folder):
    text = "[job list]\naction = count\ninputs = chapters/*\noutputs = chapters/list.txt\n"
    assert run(folder, text + chapters("a")) == ["a", "list"]
    assert run(folder, text + chapters("a")) == []
    assert made(folder, "chapters/list.txt") == "a.txt 1 2\n"


def test_files_with_a_point_in_front_are_not_waited_for(folder):
    text = book("chapters/*") + chapters("a").replace("chapters/a", "chapters/.a")
    assert run(folder, text, "book") == ["book"]
    assert made(folder) == ""
    assert run(folder, text) == ["a"]
    assert run(folder, text) == []


def test_inputs_without_patterns_are_as_before(folder):
    text = book("chapters/a.txt") + chapters("a", "b")
    assert run(folder, text, "book") == ["a", "book"]
    assert made(folder) == "chapter a"
    assert plan(folder, text) == ["b"]
