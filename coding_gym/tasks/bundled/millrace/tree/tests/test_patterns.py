import pytest

from millrace import Runner, load_jobs

BOOK = """
[jobs.book]
action = "concat"
inputs = ["title.txt", "parts/*.txt"]
outputs = ["book.txt"]
separator = "/"
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "parts" / "old").mkdir(parents=True)
    names = ("b.txt", "a.txt", "c.md", ".hidden.txt", "old/d.txt")
    for name in (*(f"parts/{name}" for name in names), "title.txt"):
        (tmp_path / name).write_text(name, encoding="utf-8")
    return tmp_path


def run(folder, text):
    path = folder / "jobs.toml"
    path.write_text(text, encoding="utf-8")
    return [job.name for job in Runner(load_jobs(path), folder).run()]


def read(folder, name="book.txt"):
    return (folder / name).read_text(encoding="utf-8")


def test_a_pattern_stands_for_the_files_that_match(folder):
    assert run(folder, BOOK) == ["book"]
    assert read(folder) == "title.txt/parts/a.txt/parts/b.txt"


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("parts/?.txt", "parts/a.txt/parts/b.txt"),
        ("parts/*", "parts/a.txt/parts/b.txt/parts/c.md"),
        ("p*/*/*", "parts/old/d.txt"),
        ("nothing/*.txt", ""),
    ],
    ids=["one", "any", "folders", "none"],
)
def test_what_matches(folder, pattern, expected):
    run(folder, BOOK.replace('title.txt", "parts/*.txt', pattern))
    assert read(folder) == expected


def test_a_job_does_not_read_what_it_writes(folder):
    text = BOOK.replace('title.txt", "parts/*.txt', "*.txt")
    assert run(folder, text) == ["book"]
    assert run(folder, text) == []
    assert read(folder) == "title.txt"


def test_one_file_more_or_less_is_a_change(folder):
    assert run(folder, BOOK) == ["book"]
    assert run(folder, BOOK) == []
    (folder / "parts" / "c.txt").write_text("new", encoding="utf-8")
    assert run(folder, BOOK) == ["book"]
    (folder / "parts" / "a.txt").unlink()
    assert run(folder, BOOK) == ["book"]
    assert read(folder) == "title.txt/parts/b.txt/new"
