import pytest

from millrace import CycleError, Job, JobFileError, load_jobs
from millrace.jobs import order_jobs


def write(folder, name, text):
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


TOML = """
[jobs.clean]
action = "replace"
inputs = ["raw.txt", "./b/../more.txt"]
outputs = ["clean.txt", "out/more.txt"]
needs = ["fetch"]
old = "a"

[jobs.fetch]
action = "count"
"""

INI = """
[job clean]
action = replace
inputs =
    raw.txt
    more.txt
outputs =
    clean.txt
    out/more.txt
needs = fetch
old = a

[job fetch]
action = count
"""


@pytest.mark.parametrize(("name", "text"), [("j.toml", TOML), ("j.ini", INI)], ids=["toml", "ini"])
def test_both_formats_say_the_same(tmp_path, name, text):
    clean, fetch = load_jobs(write(tmp_path, name, text))
    assert clean == Job(
        name="clean",
        action="replace",
        inputs=("raw.txt", "more.txt"),
        outputs=("clean.txt", "out/more.txt"),
        needs=("fetch",),
        options={"old": "a"},
    )
    assert fetch == Job(name="fetch", action="count")


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("j.yaml", "", "toml or .ini"),
        ("j.toml", "[jobs", "j.toml"),
        ("j.ini", "[task x]\n", r"\[task x\]"),
        ("j.toml", "[jobs.x]\naction = 'fly'\n", "x: action must be one of concat"),
        ("j.toml", "[jobs.x]\naction = 'sort'\ninputs = 'a'\n", "x: inputs must be a list"),
        ("j.toml", "[jobs.x]\naction = 'sort'\nunique = true\n", "x: option unique"),
        ("j.toml", "[jobs.x]\naction = 'sort'\ninputs = ['../a']\n", "x: '../a' is not a file"),
        (
            "j.toml",
            "[jobs.x]\naction = 'sort'\noutputs = ['a']\n"
            "[jobs.y]\naction = 'sort'\noutputs = ['./a']\n",
            "both x and y write a",
        ),
    ],
    ids=["suffix", "syntax", "section", "action", "list", "option", "outside", "writers"],
)
def test_bad_files_are_refused(tmp_path, name, text, message):
    with pytest.raises(JobFileError, match=message):
        load_jobs(write(tmp_path, name, text))


def test_a_missing_file_is_refused(tmp_path):
    with pytest.raises(JobFileError, match="cannot read"):
        load_jobs(tmp_path / "jobs.toml")


def names(jobs):
    return [job.name for job in jobs]


CHAIN = [
    Job("report", "concat", inputs=("b",), outputs=("c",)),
    Job("other", "concat"),
    Job("second", "concat", inputs=("a",), outputs=("b",)),
    Job("first", "concat", outputs=("a",), needs=("setup",)),
    Job("setup", "concat"),
]


def test_jobs_come_after_what_they_wait_for():
    assert names(order_jobs(CHAIN)) == ["setup", "first", "second", "report", "other"]


def test_targets_bring_their_dependencies():
    assert names(order_jobs(CHAIN, ["second"])) == ["setup", "first", "second"]


def test_unknown_names_are_refused():
    with pytest.raises(JobFileError, match="no job called nope"):
        order_jobs(CHAIN, ["nope"])
    with pytest.raises(JobFileError, match="x needs nope"):
        order_jobs([Job("x", "concat", needs=("nope",))])


def test_cycles_are_refused():
    jobs = [Job("x", "concat", inputs=("b",), outputs=("a",)), Job("y", "concat", ("a",), ("b",))]
    with pytest.raises(CycleError, match="x -> y -> x"):
        order_jobs(jobs)
