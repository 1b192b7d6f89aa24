import pytest

from stockroom import ListError, read_list
from stockroom.__main__ import main


@pytest.fixture
def good(tmp_path):
    path = tmp_path / "good.csv"
    path.write_text("item,quantity,unit\nA,1,kg\n", encoding="utf-8")
    return path


def refused(path):
    with pytest.raises(ListError) as caught:
        read_list(path)
    message = str(caught.value)
    assert message.startswith(f"cannot read {path}: ")
    assert "\n" not in message
    assert not message.endswith((" ", "None"))


def test_a_folder(tmp_path):
    folder = tmp_path / "old.csv"
    folder.mkdir()
    refused(folder)


def test_a_path_that_goes_through_a_file(good):
    refused(good / "spring.csv")


def test_a_name_that_is_too_long(tmp_path):
    refused(tmp_path / ("x" * 5000 + ".csv"))


def test_a_link_that_leads_to_itself(tmp_path):
    loop = tmp_path / "loop.csv"
    loop.symlink_to(loop)
    refused(loop)


@pytest.mark.parametrize("place", [0, 1, 2])
def test_the_command_line_names_the_list_and_counts_nothing(tmp_path, good, capsys, place):
    folder = tmp_path / "archive"
    folder.mkdir()
    lists = [str(good), str(good)]
    lists.insert(place, str(folder))
    assert main(lists) == 1
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith(f"stockroom: cannot read {folder}: ")
    assert printed.err.count("\n") == 1


def test_the_command_line_goes_through_no_file(good, capsys):
    assert main(["--low", str(good / "a.csv")]) == 1
    assert capsys.readouterr().err.startswith(f"stockroom: cannot read {good / 'a.csv'}: ")


def test_a_file_that_is_not_there(tmp_path):
    refused(tmp_path / "missing.csv")


def test_a_link_that_leads_nowhere(tmp_path):
    link = tmp_path / "link.csv"
    link.symlink_to(tmp_path / "missing.csv")
    refused(link)


def test_a_list_that_can_be_read(good):
    assert [delivery.item for delivery in read_list(good)] == ["A"]
