"""Reads task folders of Harbor, schema 1.4 and older; see ``docs/tasks.md``."""

import re
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from coding_gym.errors import InvalidTaskError
from coding_gym.patch import Patch
from coding_gym.tasks.folder import manifests, read_hidden, read_toml
from coding_gym.tasks.rows import LocatedRow, read_text
from coding_gym.tasks.task_row import Text, row_error, value_of

_INSTRUCTION = "instruction.md"
_TABLES = ("task", "metadata", "environment", "agent", "verifier")
_READABLE_VERSION = re.compile(r"1(\.[0-4](\.\d+)?)?")
_CANARY = re.compile(r"^(<!--.*canary.*-->|#.*canary.*)$", re.IGNORECASE)
_TIMEOUT_S = 600.0
_WORKDIR = re.compile(r"^WORKDIR +(/\S+)", re.MULTILINE)
_ARTIFACTS, _SCRIPT = "/logs/artifacts", "/tests/test.sh"
# Variables that affect installation or output, not the behaviour of a program.
_HARMLESS_VARIABLE = re.compile(
    r"PYTHON(UNBUFFERED|DONTWRITEBYTECODE|FAULTHANDLER|IOENCODING|UTF8)|(PIP|UV|DEBIAN|LC)_\w+|LANG"
)
# Fields of the manifest that request a feature which no sandbox supports.
_REFUSED = (
    *("steps", "environment.gpus", "environment.gpu_types", "environment.tpu"),
    *("environment.mcp_servers", "environment.skills_dir", "environment.healthcheck"),
    *("verifier.collect", "verifier.environment"),
)
_REFUSED_FILES = {
    "trajectory.json": "the episode begins with recorded steps",
    "environment/docker-compose.yaml": "the task has several containers",
    "tests/docker-compose.yaml": "the verifier has several containers",
    "tests/Dockerfile": "the verifier has another image",
}


def has_harbor_tasks(folder: Path) -> bool:
    """Returns whether a folder, or a folder below it, is a task of Harbor."""
    return any(path.with_name(_INSTRUCTION).is_file() for path in manifests(folder))


def harbor_rows(folder: Path) -> Iterator[LocatedRow]:
    """Yields the manifest and the row of each task folder, in order of paths.

    The row is an InvalidTaskError if the task is malformed or needs a feature that no sandbox
    supports.
    """
    for path in manifests(folder):
        try:
            yield str(path), _row(path)
        except InvalidTaskError as error:
            yield str(path), error


def _row(path: Path) -> dict[str, Any]:
    from coding_gym.grading.runners.harbor_runner import REWARD, TESTS  # late: imports the sandbox

    folder = path.parent
    manifest = _manifest(path)
    _refuse_unsupported(path, manifest)
    tests = read_hidden(folder / "tests")
    if "test.sh" not in tests:
        raise InvalidTaskError(f"{folder}/tests/test.sh is missing; add this script")
    hidden = {f"{TESTS}/{name}": text for name, text in tests.items()}
    variables = _variables(path, manifest, "verifier.env")
    patches = sorted((folder / "solution").glob("*.patch"))
    name = value_of(manifest, "task.name", Text, str(path), folder.name)
    labels = ("difficulty", "split", "created_at")
    return {label: str(manifest.get(f"metadata.{label}", "")) for label in labels} | {
        "instance_id": name.rpartition("/")[2],
        "image": _image(path, manifest),
        "image_path": _workdir(path, manifest),
        "problem_statement": _instruction(folder / _INSTRUCTION),
        "patch": read_text(patches[0], "surrogateescape") if len(patches) == 1 else "",
        "test_patch": Patch.between({}, hidden).text,
        "FAIL_TO_PASS": [REWARD],
        "repo": str(manifest.get("metadata.repo", "")) or name.partition("/")[0],
        "language": str(manifest.get("metadata.language", "")) or "python",
        "runner": "harbor",
        "test_command": shlex.join(["env", *(f"{k}={v}" for k, v in variables.items()), _SCRIPT]),
        "grading_timeout_s": value_of(
            manifest, "verifier.timeout_sec", float, str(path), _TIMEOUT_S
        ),
    }


def _manifest(path: Path) -> dict[str, Any]:
    """Returns the fields of ``task.toml``; fields of tables are named ``table.field``."""
    data = read_toml(path)
    version = str(data.get("schema_version", data.get("version", "1.0")))
    if not _READABLE_VERSION.fullmatch(version):
        raise InvalidTaskError(
            f"{path}: field 'schema_version' must be 1.0 to 1.4, got {version!r}; export the task "
            "for an older Harbor"
        )
    for table in _TABLES:
        fields = value_of(data, table, dict[str, Any], str(path), {})
        data |= {f"{table}.{name}": value for name, value in fields.items()}
    return data


def _refuse_unsupported(path: Path, manifest: Mapping[str, Any]) -> None:
    for field in _REFUSED:
        if value := manifest.get(field):
            raise _refusal(path, field, value)
    if (system := manifest.get("environment.os")) not in (None, "linux"):
        raise _refusal(path, "environment.os", system)
    for table in ("environment", "agent", "verifier"):
        if manifest.get(f"{table}.network_mode") == "allowlist":
            raise _refusal(path, f"{table}.network_mode", "allowlist")
    for name, value in _variables(path, manifest, "environment.env").items():
        is_default = (name, value) == ("TZ", "UTC")  # every sandbox sets this value
        if not is_default and not _HARMLESS_VARIABLE.fullmatch(name):
            raise _refusal(path, "environment.env", f"{name}={value}")
    for name, problem in _REFUSED_FILES.items():
        if (path.parent / name).exists():
            raise InvalidTaskError(
                f"{path.parent / name}: {problem}, which is not supported; run the task with Harbor"
            )


def _image(path: Path, manifest: Mapping[str, Any]) -> str:
    image = value_of(manifest, "environment.docker_image", Text, str(path), "")
    if not image:
        raise InvalidTaskError(
            f"{path}: field 'environment.docker_image' must name the task's image, because "
            "environment/Dockerfile is not built automatically; set the field to NAME after this "
            f"command: docker build -t NAME {shlex.quote(str(path.parent / 'environment'))}"
        )
    return str(image)


def _workdir(path: Path, manifest: Mapping[str, Any]) -> str:
    """Returns the project's folder in the image; only changes in this folder are graded."""
    workdir = str(manifest.get("environment.workdir", ""))
    dockerfile = path.parent / "environment" / "Dockerfile"
    if not workdir and dockerfile.is_file():
        workdir = ["", *_WORKDIR.findall(read_text(dockerfile))][-1]
    if PurePosixPath(workdir).parent == PurePosixPath(workdir) or not workdir.startswith("/"):
        raise InvalidTaskError(
            f"{path}: field 'environment.workdir' must name the project's folder in the image, an "
            f"absolute path below /, got {workdir!r}"
        )
    for artifact in value_of(manifest, "artifacts", list[Any], str(path), []):
        source = str(artifact.get("source", "") if isinstance(artifact, Mapping) else artifact)
        if not any(PurePosixPath(source).is_relative_to(top) for top in (workdir, _ARTIFACTS)):
            raise _refusal(path, "artifacts", source)
    return workdir


def _variables(path: Path, manifest: Mapping[str, Any], field: str) -> dict[str, str]:
    """Returns the variables of a table; refuses values that refer to variables of the host."""
    variables = value_of(manifest, field, dict[str, Any], str(path), {})
    for name, value in variables.items():
        if "${" in str(value):
            raise _refusal(path, field, f"{name}={value}")
    return {name: str(value) for name, value in variables.items()}


def _instruction(path: Path) -> str:
    """Returns the problem statement, without the canary comments at its beginning."""
    lines = read_text(path).splitlines()
    while lines and (not lines[0].strip() or _CANARY.match(lines[0].strip())):
        lines.pop(0)
    if not lines:
        raise InvalidTaskError(f"{path} is empty; add the problem statement")
    return "\n".join(lines) + "\n"


def _refusal(path: Path, field: str, value: object) -> InvalidTaskError:
    problem = f"is {value!r:.120}, which no sandbox supports; run the task with Harbor"
    return row_error({}, str(path), field, f"{problem}, or exclude the task with task_ids")
