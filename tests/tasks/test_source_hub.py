"""Datasets of the Hugging Face hub: names, splits, and errors if they cannot be loaded."""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import git
import pytest
from episodes import raising
from rows import refusal, row
from sandbox_fixtures import write_rows

from coding_gym.errors import UnknownTaskError
from coding_gym.task import GitTree
from coding_gym.tasks import load_tasks

pytestmark = pytest.mark.slow

DATASET = "owner/dataset"


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder in place of the hub, read by the real package."""
    datasets = pytest.importorskip("datasets")
    load, names = datasets.load_dataset, datasets.get_dataset_split_names

    def load_from_folder(name: str, **options: str) -> object:
        return load(str(tmp_path / name), cache_dir=str(tmp_path / "cache"), **options)

    monkeypatch.setattr(datasets, "load_dataset", load_from_folder)
    monkeypatch.setattr(
        datasets, "get_dataset_split_names", lambda name: names(str(tmp_path / name))
    )
    (tmp_path / DATASET).mkdir(parents=True)
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")  # so cached rows of other tests are not used
    return tmp_path / DATASET


def write(folder: Path, **splits: list[int]) -> None:
    for split, numbers in splits.items():
        write_rows(folder / f"{split}.jsonl", *map(row, numbers))


def loaded(source: str, **options: object) -> list[tuple[str, str]]:
    return [(task.task_id[-1], task.split) for task in load_tasks(source, **options)]


def test_evaluation_split_or_the_only_one_is_default(hub: Path):
    write(hub, train=[1, 2], test=[3])
    assert loaded(DATASET) == [("3", "test")]
    write(hub.parent / "single", train=[1, 2])
    assert loaded("owner/single") == [("1", "train"), ("2", "train")]


def test_splits_are_chosen_by_the_argument_or_in_the_name(hub: Path):
    write(hub, train=[1, 2], test=[3])
    assert loaded(DATASET, split="train") == [("1", "train"), ("2", "train")]
    assert loaded(DATASET, split=["test", "train"], limit=2) == [("3", "test"), ("1", "train")]
    assert loaded(f"{DATASET}:train", limit=1) == [("1", "train")]


def test_missing_split_is_named(hub: Path):
    write(hub, train=[1], validation=[2])
    with pytest.raises(UnknownTaskError, match=r"owner/dataset:dev.*train"):
        load_tasks(DATASET, split="dev")
    with pytest.raises(UnknownTaskError, match="train, validation"):
        load_tasks(DATASET)


def unreadable(*_: object, **__: object) -> Iterator[dict[str, object]]:
    """The rows of a dataset whose second row cannot be read."""
    yield row(1)
    raise OSError("the cache is damaged\nsecond line")


@pytest.mark.parametrize("load", [raising(ConnectionError("unreachable\nline 2")), unreadable])
def test_dataset_that_cannot_be_read_is_named_in_one_line(monkeypatch: pytest.MonkeyPatch, load):
    monkeypatch.setattr(pytest.importorskip("datasets"), "load_dataset", load)
    with pytest.raises(UnknownTaskError, match="owner/dataset:test") as caught:
        load_tasks(f"{DATASET}:test")
    assert "\n" not in str(caught.value)


HOST_PATHS = [
    *(("folder", value) for value in ("~", "inside")),
    *(
        ("repository", value)
        for value in ("/clones/name", "clone", "file:///c/name", "git@host:o/n", "ssh://host/name")
    ),
    *(("image", value) for value in ("/images/kept", "~/kept", "../kept", "clone/.git")),
]


@pytest.fixture
def serve(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[dict[str, object]], None]:
    """Makes the hub return one row; the working directory has paths that a row could name."""
    (tmp_path / "inside").mkdir()
    git.Repo.init(tmp_path / "clone").close()
    monkeypatch.chdir(tmp_path)

    def give(change: dict[str, object]) -> None:
        rows = [row(1) | change]
        package = SimpleNamespace(load_dataset=lambda *_, **__: rows)
        monkeypatch.setitem(sys.modules, "datasets", package)

    return give


@pytest.mark.parametrize(("field", "value"), HOST_PATHS)
def test_row_of_the_hub_cannot_name_a_host_path(
    serve: Callable[[dict[str, object]], None], field: str, value: str
):
    serve({field: value})
    message = refusal(f"{DATASET}:test")
    assert message.startswith(f"{DATASET}:test row 1 (owner__name-1): field '{field}'")


@pytest.mark.parametrize(
    "change",
    [
        {},
        {"repository": "https://host/owner/name.git"},
        {"image": "swebench/sweb.eval.x86_64.owner_1776_name-1:latest"},
        {"image": "owner/name@sha256:0", "image_path": "/testbed"},
        {"image": "inside"},
    ],
)
def test_a_row_of_the_hub_can_name_public_repositories_and_images(
    serve: Callable[[dict[str, object]], None], change: dict[str, object]
):
    serve(change)
    (task,) = load_tasks(f"{DATASET}:test")
    assert task.image == change.get("image", "")


def test_rows_of_the_hub_take_clones_that_the_user_names(
    serve: Callable[[dict[str, object]], None], tmp_path: Path
):
    serve({})
    (task,) = load_tasks(f"{DATASET}:test", repositories={"owner/name": "clone"})
    assert task.tree == GitTree(str(tmp_path / "clone"))


def test_files_and_folders_are_no_datasets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    for name in ("data/rows.jsonl", "rows", "a/b/c", "./rows", "/a/b", "~/rows", "a /b"):
        with pytest.raises(UnknownTaskError, match="there is no task source"):
            load_tasks(name)
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "owner" / "dataset", train=[7])
    assert loaded(DATASET) == [("7", "train")]
