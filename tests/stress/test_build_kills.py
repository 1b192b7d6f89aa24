"""Builders of templates that are killed: the cache holds only whole templates."""

import itertools
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

from coding_gym.sandbox import open_sandbox
from coding_gym.task import FilesTree, Task
from coding_gym.workspace import TemplateStore
from coding_gym.workspace.cache import clear_cache

pytestmark = pytest.mark.nightly


def task(number: int) -> Task:
    """Returns a task; those of odd numbers have install commands."""
    install = ("seq 60 | xargs -I{} touch /opt/env/{}; echo whole > /opt/env/last",)
    return Task(
        task_id=f"task-{number}",
        tree=FilesTree({f"file_{n}.py": f"NUMBER = {number}\n" for n in range(60)}),
        problem_statement="nothing is wrong",
        install_commands=install if number % 2 else (),
    )


def build(folder: Path, number: int) -> "subprocess.Popen[bytes]":
    """Builds one template in a process of its own."""
    argv = [sys.executable, __file__, str(folder), str(number)]
    return subprocess.Popen(argv, env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)})


def test_killed_builders_leave_only_whole_templates(tmp_path: Path) -> None:
    rng, numbers, num_killed = random.Random(1), itertools.count(), 0
    while num_killed < 8:
        builder = build(tmp_path, next(numbers))
        try:
            assert builder.wait(rng.uniform(0, 4)) == 0
        except subprocess.TimeoutExpired:
            builder.kill()
            builder.wait()
            num_killed += 1
    both = [build(tmp_path, 101) for _ in range(2)]
    assert [builder.wait() for builder in both] == [0, 0]
    store = TemplateStore(folder=tmp_path)
    for number in (*range(next(numbers)), 101):
        with open_sandbox(store.get(task(number)).spec) as sandbox:
            output = sandbox.run("git status -s; cat file_59.py /opt/env/last").output
        whole = "whole\n" if number % 2 else ""
        assert output.startswith(f"NUMBER = {number}\n{whole}")
    clear_cache(tmp_path, older_than_days=1)
    assert list(tmp_path.glob("*/*.partial")) == []


if __name__ == "__main__":
    TemplateStore(folder=Path(sys.argv[1])).get(task(int(sys.argv[2])))
