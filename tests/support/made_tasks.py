"""Tasks out of trees that are written in the tests."""

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from coding_gym.patch import Patch
from coding_gym.task import FilesTree, Task

needs_junit = pytest.mark.skipif(
    not (shutil.which("javac") and Path("/usr/share/java/junit4.jar").exists()),
    reason="needs a JDK and JUnit 4 (apt-get install default-jdk-headless junit4)",
)


def made_task(
    task_id: str,
    base: Mapping[str, str],
    fixed: Mapping[str, str],
    hidden: Mapping[str, str],
    **fields: Any,
) -> Task:
    """A task whose gold patch gives files of the base other contents, and adds hidden tests."""
    return Task(
        task_id=task_id,
        tree=FilesTree(base),
        problem_statement="Something is wrong",
        gold_patch=Patch.between({path: base[path] for path in fixed}, fixed).text,
        test_patch=Patch.between({}, hidden).text,
        created_at="2024-02-03T04:05:06Z",
        **fields,
    )
