import pytest

from braid import MergeResult, merge
from braid.__main__ import main

BASE = "".join(f"{letter}\n" for letter in "abcdefgh")


def edited(**lines):
    return "".join(lines.get(letter, f"{letter}\n") for letter in "abcdefgh")


def test_nothing_to_do():
    assert merge(BASE, BASE, BASE) == MergeResult(BASE, 0)


def test_changes_of_one_side():
    ours = edited(b="B\n", e="")
    assert merge(BASE, ours, BASE) == MergeResult(ours, 0)
    assert merge(BASE, BASE, ours) == MergeResult(ours, 0)


def test_changes_in_different_places():
    result = merge(BASE, edited(a="A\n"), edited(c="", h="h\ni\n"))
    assert result == MergeResult(edited(a="A\n", c="", h="h\ni\n"), 0)


def test_equal_changes():
    ours = edited(b="B\n", e="")
    assert merge(BASE, ours, ours) == MergeResult(ours, 0)


def test_changes_of_one_line_conflict():
    result = merge(BASE, edited(d="1\n"), edited(d="2\n"), our_name="x", their_name="y")
    conflict = "<<<<<<< x\n1\n=======\n2\n>>>>>>> y\n"
    assert result == MergeResult(edited(d=conflict), 1)


def test_removing_and_changing_conflict():
    result = merge(BASE, edited(d=""), edited(d="2\n"))
    assert result == MergeResult(edited(d="<<<<<<< ours\n=======\n2\n>>>>>>> theirs\n"), 1)


def test_insertions_at_one_place_conflict():
    result = merge(BASE, edited(d="d\n1\n"), edited(d="d\n2\n"))
    conflict = "d\n<<<<<<< ours\n1\n=======\n2\n>>>>>>> theirs\n"
    assert result == MergeResult(edited(d=conflict), 1)


def test_neighbouring_changes_conflict():
    result = merge(BASE, edited(c="C\n"), edited(d="D\n"))
    assert result == MergeResult(
        edited(c="<<<<<<< ours\nC\nd\n=======\nc\nD\n>>>>>>> theirs\n", d=""), 1
    )


def test_several_conflicts():
    result = merge(BASE, edited(a="1\n", h="1\n", d=""), edited(a="2\n", h="2\n"))
    assert result.conflicts == 2


@pytest.fixture
def files(tmp_path):
    paths = []
    for name, text in (("base", BASE), ("ours", edited(a="A\n")), ("theirs", edited(h=""))):
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        paths.append(str(path))
    return paths


def test_the_command_line(files, tmp_path, capsys):
    assert main(["merge", *files]) == 0
    assert capsys.readouterr().out == edited(a="A\n", h="")
    assert main(["diff", *files[:2]]) == 1
    patch = tmp_path / "patch"
    patch.write_text(capsys.readouterr().out, encoding="utf-8")
    assert main(["patch", files[0], str(patch)]) == 0
    assert capsys.readouterr().out == edited(a="A\n")
    assert main(["diff", files[0], files[0]]) == 0


def test_the_command_line_reports_errors(files, tmp_path, capsys):
    assert main(["diff", files[0], str(tmp_path / "gone")]) == 2
    assert main(["patch", files[0], files[1]]) == 2
    assert capsys.readouterr().err.count("braid: ") == 2
