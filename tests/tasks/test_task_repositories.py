"""Where a row's repository is found."""

import git
import pytest
from rows import loaded, refusal, row

from coding_gym.errors import InvalidArgumentError
from coding_gym.task import FilesTree, GitTree
from coding_gym.tasks import load_tasks

ROW = row()


def init(path, *, bare=False):
    git.Repo.init(path, bare=bare).close()
    return path


@pytest.mark.parametrize("name", ["owner__name", "owner/name", "name"])
@pytest.mark.parametrize("ending", ["", ".git"])
def test_a_clone_is_found_under_each_usual_name(tmp_path, name, ending):
    clone = init(tmp_path / (name + ending), bare=bool(ending))
    assert loaded(ROW, repositories=tmp_path).tree == GitTree(str(clone))


def test_the_full_name_goes_before_the_short_one_and_plain_folders_do_not_count(tmp_path):
    (tmp_path / "owner__name").mkdir()
    init(tmp_path / "name")
    clone = init(tmp_path / "owner" / "name")
    assert loaded(ROW, repositories=str(tmp_path)).tree == GitTree(str(clone))


def test_a_missing_clone_is_named_with_the_places_and_the_way_out(tmp_path):
    message = refusal([ROW], repositories=tmp_path)
    assert "no clone of 'owner/name'" in message
    assert str(tmp_path) in message
    assert "owner__name, owner__name.git, owner/name, owner/name.git, name, name.git" in message
    assert f"git clone https://github.com/owner/name {tmp_path}/owner__name" in message


def test_a_clone_is_only_asked_for_where_the_task_is_chosen(tmp_path):
    other = ROW | {"instance_id": "other-1", "repo": "owner/other"}
    clone = init(tmp_path / "name")
    (task,) = load_tasks([other, ROW], repos="owner/name", repositories=tmp_path)
    assert task.tree == GitTree(str(clone))


def test_a_mapping_gives_paths_and_urls(tmp_path):
    clone = init(tmp_path / "anything")
    for value in (clone, str(clone), "https://git.example.org/owner/name.git"):
        task = loaded(ROW, repositories={"owner/name": value})
        assert task.tree == GitTree(str(value))


def test_a_mapping_without_the_repository_says_what_it_has(tmp_path):
    found = refusal([ROW], repositories={"c/d": "x", "a/b": "y"})
    assert "for 'owner/name'; the mapping has a/b, c/d; add" in found
    found = refusal([ROW], repositories={"owner/name": tmp_path})
    assert "repositories['owner/name'] must be a git repo" in found


def test_a_row_that_names_its_repository_or_files_keeps_them(tmp_path):
    url = "https://git.example.org/fork.git"
    rows = [ROW | {"repository": url}, ROW | {"instance_id": "2", "files": {"a": "b"}}]
    trees = [task.tree for task in load_tasks(rows, repositories=tmp_path)]
    assert trees == [GitTree(url), FilesTree({"a": "b"})]


def test_a_folder_that_is_not_there_is_a_wrong_argument(tmp_path):
    with pytest.raises(InvalidArgumentError, match="repositories must be a folder of git clones"):
        load_tasks([ROW], repositories=tmp_path / "gone")
