"""Task folders of Harbor: supported fields, and unsupported fields that are named in errors."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from image_fixtures import GIT_PROGRAMS, entry, folder, oci_layout, system, tar_of
from rows import refusal
from sandbox_fixtures import write_files

from coding_gym.grade import TestStatus
from coding_gym.grading import grade
from coding_gym.patch import Patch
from coding_gym.tasks import load_tasks
from coding_gym.workspace import TemplateStore

MANIFEST = """\
schema_version = "1.4"
[task]
name = "acme/adds"
[environment]
docker_image = "acme/adds:1"
[verifier]
timeout_sec = 30.0
env = { WANTED = "3" }
"""
TEST = """\
#!/bin/bash
cd /app && [ "$(bash add.sh 1 2)" = "$WANTED" ]
echo $(( $? == 0 )) > /logs/verifier/reward.txt
"""
ADD = "echo $(($1 - $2))\n"
FIX = Patch.between({"add.sh": ADD}, {"add.sh": ADD.replace("-", "+")})

Write = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Returns a function that writes a task of Harbor; its arguments replace or remove files."""

    def write_task(**changes: str | None) -> Path:
        files: dict[str, str | None] = {
            "task.toml": MANIFEST,
            "instruction.md": "<!-- canary 1 -->\n\nIt adds wrongly.\n",
            "environment/Dockerfile": "FROM debian:13\nWORKDIR /srv\nWORKDIR /app\nCOPY . .\n",
            "tests/test.sh": TEST,
            **changes,
        }
        texts = {name: text for name, text in files.items() if text is not None}
        return write_files(tmp_path / "adds", texts)

    return write_task


@pytest.mark.slow
def test_script_grades_a_task_in_its_image(
    write: Write, store: TemplateStore, tmp_path: Path
) -> None:
    root = [*system(*GIT_PROGRAMS, "timeout"), folder("app"), entry("app/add.sh", ADD)]
    image = oci_layout(tmp_path / "image", [tar_of(root)], Env=["PATH=/bin"])
    (task,) = load_tasks(write())
    assert (task.task_id, task.repo, task.image_path) == ("adds", "acme", "/app")
    assert (task.image, task.problem_statement) == ("acme/adds:1", "It adds wrongly.\n")
    task = replace(task, image=str(image))
    template = store.get(task)
    assert grade(task, template, FIX).resolved
    wrong = grade(task, template, Patch.between({"add.sh": ADD}, {"add.sh": "\n"}))
    assert wrong.fail_to_pass == {"reward": TestStatus.FAILED}


def test_folder_of_tasks_and_variables_that_change_no_program_load(write: Write) -> None:
    manifest = f'{MANIFEST}[environment.env]\nTZ = "UTC"\nPYTHONUTF8 = "1"\nPIP_NO_INPUT = "1"\n'
    (task,) = load_tasks(write(**{"task.toml": manifest}).parent)
    assert (task.task_id, task.runner) == ("adds", "harbor")


def test_caches_are_skipped_and_all_bytes_are_kept(write: Write) -> None:
    gold = Patch.between({"a": "1\udcff\r\n"}, {"a": "2\udcff\r\n"}).text
    folder = write()
    for name, data in {
        "tests/__pycache__/a.pyc": b"\xff\0",
        "tests/a.txt": b"x\xff\r\n",
        "solution/a.patch": gold.encode("utf-8", "surrogateescape"),
    }.items():
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(data)
    (task,) = load_tasks(folder)
    assert task.gold_patch == gold
    assert "+x\udcff\r\n" in task.test_patch
    assert ".pyc" not in task.test_patch


def test_manifest_workdir_overrides_dockerfile(write: Write) -> None:
    manifest = MANIFEST.replace("[verifier]", 'workdir = "/src"\n[verifier]')
    (task,) = load_tasks(write(**{"task.toml": manifest}))
    assert task.image_path == "/src"


@pytest.mark.parametrize(
    ("file", "text", "named"),
    [
        ("task.toml", "schema_version =", "task.toml"),
        ("task.toml", 'schema_version = "1.5"', "field 'schema_version'"),
        ("task.toml", "[environment]\ngpus = 1", "field 'environment.gpus'"),
        ("task.toml", '[agent]\nnetwork_mode = "allowlist"', "field 'agent.network_mode'"),
        ("task.toml", f'artifacts = ["/data"]\n{MANIFEST}', "field 'artifacts'"),
        ("task.toml", f'{MANIFEST}[environment.env]\nKEY = "1"', "field 'environment.env'"),
        ("task.toml", f'{MANIFEST}[environment.env]\nTZ = "CET"', "field 'environment.env'"),
        ("task.toml", MANIFEST.replace("30.0", '"10m"'), "field 'verifier.timeout_sec'"),
        ("task.toml", MANIFEST.replace('"3"', '"${KEY}"'), "field 'verifier.env'"),
        ("environment/docker-compose.yaml", "", "containers"),
        ("instruction.md", "# canary\n", "instruction.md"),
        ("task.toml", "[environment]", "field 'environment.docker_image'"),
        ("environment/Dockerfile", None, "field 'environment.workdir'"),
        ("tests/Dockerfile", "FROM debian:13\n", "tests/Dockerfile"),
        ("tests/test.sh", None, "tests/test.sh"),
    ],
)
def test_unsupported_file_or_field_is_refused_by_name(
    write: Write, file: str, text: str | None, named: str
) -> None:
    assert named in refusal(write(**{file: text}))
