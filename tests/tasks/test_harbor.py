"""Folders of Harbor: fields that are read, and those that are refused by name."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from rows import refusal

from coding_gym.grading import grade
from coding_gym.patch import Patch
from coding_gym.task import FilesTree, FolderTree
from coding_gym.tasks import load_tasks
from coding_gym.tasks.dockerfile import read_dockerfile
from coding_gym.workspace import TemplateStore

MANIFEST = """\
schema_version = "1.4"
[task]
name = "acme/adds"
[verifier]
timeout_sec = 30.0
env = { WANTED = "3" }
"""
TEST = """\
#!/bin/bash
cd /app && python -c "import os, calc; assert calc.add(1, 2) == int(os.environ['WANTED'])"
echo $(( $? == 0 )) > /logs/verifier/reward.txt
"""
CALC = "def add(a, b):\n    return a - b\n"
FIX = Patch.between({"calc.py": CALC}, {"calc.py": CALC.replace("-", "+")})

Write = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Writes a task of Harbor that needs no image, with some files in another form."""

    def made(**changes: str | None) -> Path:
        files: dict[str, str | None] = {
            "task.toml": MANIFEST,
            "instruction.md": "<!-- canary 1 -->\n\nIt adds wrongly.\n",
            "environment/Dockerfile": "FROM python:3\nWORKDIR /app\nCOPY calc.py .\n",
            "environment/calc.py": CALC,
            "tests/test.sh": TEST,
            **changes,
        }
        shutil.rmtree(tmp_path / "adds", ignore_errors=True)
        for name, text in files.items():
            path = tmp_path / "adds" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            if text is not None:
                path.write_text(text, encoding="utf-8")
        return tmp_path / "adds"

    return made


def test_a_task_with_a_shared_verifier_is_graded_by_its_script(
    write: Write, store: TemplateStore
) -> None:
    (task,) = load_tasks(f"harbor:{write()}")
    assert (task.task_id, task.repo, task.image_path) == ("adds", "acme", "/app")
    assert task.problem_statement == "It adds wrongly.\n"
    assert grade(task, store.get(task), FIX).resolved
    wrong = grade(task, store.get(task), Patch.between({"calc.py": CALC}, {"calc.py": "\n"}))
    assert not wrong.resolved
    assert "the reward is 0: exit code 0, it printed: " in wrong.detail
    assert "AttributeError: module 'calc' has no attribute" in wrong.detail


def test_a_folder_of_tasks_is_recognised(write: Write) -> None:
    assert [task.runner for task in load_tasks(write().parent)] == ["harbor"]


@pytest.mark.parametrize(
    ("file", "text", "named"),
    [
        ("task.toml", "schema_version =", "task.toml"),
        ("task.toml", 'schema_version = "1.5"', "field 'schema_version'"),
        ("task.toml", "[environment]\ngpus = 1", "field 'environment.gpus'"),
        ("task.toml", '[environment]\nos = "windows"', "field 'environment.os'"),
        ("task.toml", '[agent]\nnetwork_mode = "allowlist"', "field 'agent.network_mode'"),
        ("task.toml", '[[steps]]\nname = "one"', "field 'steps'"),
        ("task.toml", 'artifacts = ["/data"]', "field 'artifacts'"),
        ("task.toml", '[environment.env]\nKEY = "1"', "field 'environment.env'"),
        ("task.toml", "[environment.healthcheck]\nretries = 3", "'environment.healthcheck'"),
        ("task.toml", '[verifier]\nenv = { KEY = "${KEY}" }', "field 'verifier.env'"),
        ("environment/docker-compose.yaml", "", "containers"),
        ("instruction.md", "# canary\n", "instruction.md"),
        ("environment/Dockerfile", "FROM alpine:3\n", "line 1: FROM 'alpine:3'"),
        ("environment/Dockerfile", "WORKDIR /\n", "FROM"),
        ("environment/Dockerfile", "FROM debian:12\n", "WORKDIR"),
        ("environment/Dockerfile", "FROM python:3\nWORKDIR /a\nCOPY x .\n", "'x'"),
        ("environment/Dockerfile", "FROM python:3\nCOPY [ab].py /app/\n", "'[ab].py'"),
        ("environment/Dockerfile", "FROM python:3\nCOPY --chown=x\n", "'--chown=x'"),
        ("environment/Dockerfile", "FROM python:3\nADD x /x\n", "line 2: ADD 'x /x'"),
        (
            "environment/Dockerfile",
            "FROM python:3\nWORKDIR /a\nRUN apt-get update && \\\n  apt-get install -y no-such\n",
            "apt-get install no-such",
        ),
        ("environment/Dockerfile", "FROM python:3\nWORKDIR /a\nENV KEY=1\n", "field 'ENV'"),
        ("environment/Dockerfile", "FROM python:3\nWORKDIR /a\nCOPY calc.py /etc/\n", "COPY"),
    ],
)
def test_unsupported_file_or_field_is_refused_by_name(
    write: Write, file: str, text: str, named: str
) -> None:
    assert named in refusal(f"harbor:{write(**{file: text})}")


def test_the_subset_of_dockerfiles_is_read(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src/a.py").write_text("A = 1\n", encoding="utf-8")
    (tmp_path / "b.txt").write_text("b\n", encoding="utf-8")
    path = tmp_path / "Dockerfile"
    path.write_text(
        "# a comment\nFROM python:3.9-slim@sha256:0123\nENV A=1 B='2 3'\nWORKDIR /srv\n"
        "WORKDIR app\nCOPY --chown=agent src/ ./\n"
        "RUN apt-get update && pip install attrs==25.1 \\\n"
        "    && rm -rf /var/lib/apt/lists/*\nCOPY b.txt data/\nRUN useradd agent\nUSER agent\n",
        encoding="utf-8",
    )
    found = read_dockerfile(path)
    assert (found.interpreter, found.workdir) == ("3.9", "/srv/app")
    assert found.env == {"A": "1", "B": "2 3"}
    assert found.commands == ["pip install attrs==25.1"]
    assert found.tree() == FilesTree({"a.py": "A = 1\n", "data/b.txt": "b\n"})
    assert found.tree(for_commands=True) == FolderTree(str(tmp_path / "src"))
