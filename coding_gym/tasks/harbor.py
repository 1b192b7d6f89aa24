"""Task folders of Harbor, schema 1.4 and older; see ``docs/tasks.md`` for what is refused."""

import re
import shlex
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from coding_gym.errors import InvalidTaskError
from coding_gym.patch import Patch

_MANIFEST, _INSTRUCTION = "task.toml", "instruction.md"
_NEWEST = (1, 4)
_MANIFESTS = (_MANIFEST, f"*/{_MANIFEST}", f"*/*/{_MANIFEST}")
_CANARY = re.compile(r"^(<!--.*canary.*-->|#.*canary.*)$", re.IGNORECASE)
_TIMEOUT_S = 600.0
_WORKDIR = re.compile(r"^WORKDIR +(/\S+)", re.MULTILINE)
_CONVENTION, _SCRIPT = "/logs/artifacts", "/tests/test.sh"
# Variables that change how something is installed or printed, not what a program does.
_PLAIN_VARIABLES = re.compile(r"(PYTHON|PIP_|UV_|DEBIAN_|LANG$|LC_|TZ$)")
# What no sandbox does, by its place in task.toml.
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


def is_checkout(folder: Path) -> bool:
    """Returns whether a folder has a task of Harbor, in itself or up to two folders below."""
    return any(
        path.with_name(_INSTRUCTION).is_file()
        for pattern in _MANIFESTS
        for path in folder.glob(pattern)
    )


def harbor_rows(folder: Path) -> Iterator[tuple[str, Any]]:
    """Yields (where, row) for each task folder, in order of paths.

    A task that is malformed, or wants what no sandbox does, comes as its InvalidTaskError.
    """
    for path in sorted({path for pattern in _MANIFESTS for path in folder.glob(pattern)}):
        try:
            yield str(path), _row(path)
        except InvalidTaskError as error:
            yield str(path), error


def _row(path: Path) -> dict[str, Any]:
    # Here, because it brings the sandbox along.
    from coding_gym.grading.runners.harbor_runner import REWARD, TESTS

    folder = path.parent
    data = _manifest(path)
    verifier, metadata = _table(data, "verifier"), _table(data, "metadata")
    _plain_variables(path, "environment.env", _value(data, "environment.env") or {})
    hidden = {f"{TESTS}/{place}": text for place, text in _tests(folder).items()}
    variables = _plain_variables(path, "verifier.env", verifier.get("env", {}))
    patches = sorted((folder / "solution").glob("*.patch"))
    name = str(_table(data, "task").get("name", folder.name))
    labels = {key: str(metadata.get(key, "")) for key in ("difficulty", "split", "created_at")}
    return labels | {
        "instance_id": name.rpartition("/")[2],
        "image": _image(path, data),
        "image_path": _workdir(path, data),
        "problem_statement": _instruction(folder / _INSTRUCTION),
        "patch": _read_utf8(patches[0]) if len(patches) == 1 else "",
        "test_patch": Patch.between({}, hidden).text,
        "FAIL_TO_PASS": [REWARD],
        "repo": str(metadata.get("repo", "")) or name.partition("/")[0],
        "language": str(metadata.get("language", "")) or "python",
        "runner": "harbor",
        "test_command": shlex.join(["env", *(f"{k}={v}" for k, v in variables.items()), _SCRIPT]),
        "grading_timeout_s": float(verifier.get("timeout_sec", _TIMEOUT_S)),
    }


def _manifest(path: Path) -> dict[str, Any]:
    """Returns the content of ``task.toml``, all of which a sandbox can do."""
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except (ValueError, OSError) as error:
        raise InvalidTaskError(f"{path}: cannot be read: {error}") from None
    version = str(data.get("schema_version", data.get("version", "1.0")))
    numbers = tuple(int(part) for part in version.split(".") if part.isdigit())
    if numbers > _NEWEST:
        raise InvalidTaskError(
            f"{path}: field 'schema_version' must be at most 1.4, got {version!r}; export the task "
            "for an older Harbor"
        )
    for place in _REFUSED:
        if value := _value(data, place):
            raise _refusal(path, place, value)
    if (system := _value(data, "environment.os")) not in (None, "linux"):
        raise _refusal(path, "environment.os", system)
    for table in ("environment", "agent", "verifier", "verifier.environment"):
        if _value(data, f"{table}.network_mode") == "allowlist":
            raise _refusal(path, f"{table}.network_mode", "allowlist")
    for name, why in _REFUSED_FILES.items():
        if (path.parent / name).exists():
            raise InvalidTaskError(
                f"{path.parent / name}: {why}, which no sandbox here does; run the task with Harbor"
            )
    return data


def _image(path: Path, data: Mapping[str, Any]) -> str:
    """Returns the name of the image that the task runs in."""
    image = _value(data, "environment.docker_image")
    if not image:
        raise InvalidTaskError(
            f"{path}: field 'environment.docker_image' must name the task's image, as nothing here "
            "builds environment/Dockerfile; build it (docker build environment), and name the "
            "result there"
        )
    return str(image)


def _workdir(path: Path, data: Mapping[str, Any]) -> str:
    """Returns the project's folder in the image: the only one whose changes are graded."""
    workdir = str(_value(data, "environment.workdir") or "")
    dockerfile = path.parent / "environment" / "Dockerfile"
    if not workdir and dockerfile.is_file():
        workdir = next(iter(_WORKDIR.findall(_read_utf8(dockerfile))[::-1]), "")
    if PurePosixPath(workdir).parent == PurePosixPath(workdir) or not workdir.startswith("/"):
        raise InvalidTaskError(
            f"{path}: field 'environment.workdir' must name the project's folder in the image, an "
            f"absolute path below /, got {workdir!r}"
        )
    for artifact in data.get("artifacts", []):
        source = str(artifact.get("source", "") if isinstance(artifact, Mapping) else artifact)
        if not any(PurePosixPath(source).is_relative_to(one) for one in (workdir, _CONVENTION)):
            raise _refusal(path, "artifacts", source)
    return workdir


def _plain_variables(path: Path, place: str, variables: Mapping[str, Any]) -> dict[str, str]:
    """Returns variables for the tests; refuses those that the agent's commands would miss."""
    for name, value in variables.items():
        of_tests_alone = place.startswith("verifier.")
        if "${" in str(value) or not (of_tests_alone or _PLAIN_VARIABLES.match(name)):
            raise _refusal(path, place, f"{name}={value}")
    return {name: str(value) for name, value in variables.items()}


def _tests(folder: Path) -> dict[str, str]:
    """Returns the text of all files in ``tests/``, by path there."""
    tests = folder / "tests"
    files = {
        str(file.relative_to(tests)): _read_utf8(file)
        for file in sorted(tests.rglob("*"))
        if file.is_file()
    }
    if "test.sh" not in files:
        raise InvalidTaskError(f"{folder}: there is no tests/test.sh")
    return files


def _read_utf8(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise InvalidTaskError(f"{path} must be text in UTF-8, and is binary") from None


def _instruction(path: Path) -> str:
    """Returns what the agent reads: without the canaries at its beginning."""
    if not path.is_file():
        raise InvalidTaskError(f"{path} is missing")
    lines = _read_utf8(path).splitlines()
    while lines and (not lines[0].strip() or _CANARY.match(lines[0].strip())):
        lines.pop(0)
    if not lines:
        raise InvalidTaskError(f"{path} says nothing")
    return "\n".join(lines) + "\n"


def _value(data: Mapping[str, Any], place: str) -> Any:
    value: Any = data
    for name in place.split("."):
        value = value.get(name) if isinstance(value, Mapping) else None
    return value


def _table(data: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = data.get(name)
    return value if isinstance(value, Mapping) else {}


def _refusal(path: Path, place: str, value: object) -> InvalidTaskError:
    return InvalidTaskError(
        f"{path}: field {place!r} is {value!r:.120}, which no sandbox here does; run the task "
        "with Harbor, or leave it out"
    )
