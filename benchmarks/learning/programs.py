"""Writes tasks for training and for testing, with bugs of one edit, in different programs.

    python benchmarks/learning/programs.py bench    # the tasks, in a few minutes

The programs are part of this package, or are source distributions with tests, which are downloaded.
``bugs.json.gz`` has the edits of each bug, the failing tests, and the hidden tests:
half of the failing test functions, as `coding-gym tasks synthesize --show-failing` chose them. The
agent sees the other half, of which the issue names up to three. The grader confirmed every bug when
the file was made; see `docs/synthesis.md`. The lists exclude doctests, which policies can edit, and
tests that fail without any bug. ``train.jsonl`` has the tasks of three quarters of the programs,
``test.jsonl`` the tasks of the other programs; a digest of a program's name selects the file.
"""

import argparse
import gzip
import hashlib
import json
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

from coding_gym.patch import Patch
from coding_gym.source_text import Edit, apply_edits
from coding_gym.synthesis import Project, copy_project, write_rows
from coding_gym.synthesis.hiding import hide
from coding_gym.synthesis.project import keep_tree
from coding_gym.task import FolderTree, Task
from coding_gym.tasks.bundled_tasks import bundled_folder

SPLITS = ("train", "test")
BUGS = Path(__file__).with_name("bugs.json.gz")
_TEST_SHARE = 4  # one of four programs is for testing
_GRADING_TIMEOUT_S = 10.0  # patches with endless loops use all of this time
_INSTALL = "python -m pip install --quiet pytest --editable ."

Bug = Mapping[str, Any]
"""A bug as ``bugs.json.gz`` has it: task_id, path, edits, hidden, failing, named, difficulty."""


def split_of(name: str) -> str:
    """Returns the split of a program; the split depends only on the name."""
    digest = hashlib.sha256(name.encode()).digest()
    return "test" if digest[0] % _TEST_SHARE == 0 else "train"


def project_of(name: str, requirement: str, trees: Path) -> Project:
    """Returns a program, after writing its files to a folder in ``trees``."""
    if not requirement:
        name, folder = copy_project(bundled_folder() / name / "tree", trees, name=name)
        return Project(name=name, folder=folder)
    trees.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=trees) as scratch:
        pip = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--no-binary", ":all:"]
        subprocess.run([*pip, "-d", scratch, requirement], check=True)
        (archive,) = Path(scratch).iterdir()
        shutil.unpack_archive(archive, Path(scratch, "unpacked"), filter="data")
        (tree,) = Path(scratch, "unpacked").iterdir()
        folder = keep_tree(tree, trees, requirement.replace("==", "-"))
    return Project(name=name, folder=folder, install_commands=(_INSTALL,))


def build(out: Path, workers: int) -> None:
    """Writes the splits of the bench from the list of bugs.

    Args:
        out: The folder of the bench.
        workers: Number of programs at the same time.

    Raises:
        ValueError: A program differs from the version in which the bugs were made.
    """
    programs = json.loads(gzip.decompress(BUGS.read_bytes()))

    def tasks_of(name: str) -> list[Task]:
        program = programs[name]
        project = project_of(name, program["requirement"], out / "trees")
        if project.digest() != program["digest"]:
            raise ValueError(f"{name} differs from the version of {BUGS.name}; make the bugs again")
        print(f"{name}: {len(program['bugs'])} tasks", flush=True)
        return [_task(name, project, program, bug) for bug in program["bugs"]]

    with ThreadPoolExecutor(workers) as pool:
        tasks = dict(zip(programs, pool.map(tasks_of, programs), strict=True))
    for split in SPLITS:
        split_tasks = [task for name in programs if split_of(name) == split for task in tasks[name]]
        write_rows(split_tasks, out / f"{split}.jsonl")


def _task(name: str, project: Project, program: Mapping[str, Any], bug: Bug) -> Task:
    """Returns the task of one bug."""
    hidden_lines = [(path, line) for path, line in bug["hidden"]]
    paths = {bug["path"], *(path for path, _ in hidden_lines)}
    texts = {path: data.decode("utf-8") for path, data in project.contents(paths).items()}
    visible_texts = hide({path: texts[path] for path, _ in hidden_lines}, hidden_lines)
    if visible_texts is None:
        raise ValueError(f"{bug['task_id']}: its tests cannot be hidden")
    edits = [Edit(bug["path"], *edit) for edit in bug["edits"]]
    broken_texts = {bug["path"]: apply_edits(texts[bug["path"]], edits)}
    gold_patch = Patch.between(broken_texts, {bug["path"]: texts[bug["path"]]}).text
    test_patch = Patch.between(visible_texts, {path: texts[path] for path in visible_texts}).text
    names = program["tests"]
    issue = ["These tests fail:", *(f"- {test}" for test in bug["named"])]
    issue.append("Find the bug and repair it.\n")
    return replace(
        project.task(bug["task_id"], "\n".join(issue)),
        repo=name,
        tree=FolderTree(str(project.folder), gold_patch + test_patch),
        gold_patch=gold_patch,
        test_patch=test_patch,
        fail_to_pass=tuple(names[number] for number in bug["failing"]),
        pass_to_pass=tuple(test for n, test in enumerate(names) if n not in bug["failing"]),
        excluded_tests=tuple(program["excluded"]),
        visible_test_command=shlex.join(
            ["python", "-m", "pytest", "-q", *(f"--deselect={t}" for t in program["excluded"])]
        ),
        difficulty=bug["difficulty"],
        grading_timeout_s=_GRADING_TIMEOUT_S,
    )


def main() -> None:
    """Writes the tasks of both splits."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("out", type=Path, help="the folder of the bench")
    parser.add_argument("--workers", type=int, default=2, help="programs at a time (default 2)")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    build(options.out, options.workers)


if __name__ == "__main__":
    main()
