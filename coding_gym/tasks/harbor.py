"""Task folders of Harbor, schema 1.4 and older; see ``docs/tasks.md`` for what is refused."""

import re
import shlex
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from coding_gym.errors import InvalidTaskError
from coding_gym.patch import Patch
from coding_gym.task import Task
from coding_gym.tasks.dockerfile import (
    Dockerfile,
    base_interpreter,
    is_below,
    read_dockerfile,
    read_utf8,
)

_MANIFEST, _INSTRUCTION = "task.toml", "instruction.md"
_NEWEST = (1, 4)
_MANIFESTS = (_MANIFEST, f"*/{_MANIFEST}", f"*/*/{_MANIFEST}")
_CANARY = re.compile(r"^(<!--.*canary.*-->|#.*canary.*)$", re.IGNORECASE)
_TIMEOUT_S = 600.0
_CONVENTION, _SCRIPT = "/logs/artifacts", "/tests/test.sh"
# Variables that change how something is installed or printed, not what a program does.
_PLAIN_VARIABLES = re.compile(r"(PYTHON|PIP_|UV_|DEBIAN_|LANG$|LC_|TZ$)")
# What no sandbox does, by its place in task.toml.
_REFUSED = (
    *("steps", "environment.gpus", "environment.gpu_types", "environment.tpu"),
    *("environment.mcp_servers", "environment.skills_dir", "environment.healthcheck"),
    *("verifier.collect", "verifier.environment.docker_image"),
)
_REFUSED_FILES = {
    "trajectory.json": "the episode begins with recorded steps",
    "environment/docker-compose.yaml": "the task has several containers",
    "tests/docker-compose.yaml": "the verifier has several containers",
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
            yield str(path), _task(path).to_row()
        except InvalidTaskError as error:
            yield str(path), error


def _task(path: Path) -> Task:
    # Here, because they bring the sandbox along.
    from coding_gym.grading.runners.harbor_runner import REWARD, TESTS

    folder = path.parent
    data = _manifest(path)
    agent, verifier = _images(path, data)
    verifier_data = _table(data, "verifier")
    hidden = {f"{TESTS}/{place}": text for place, text in _tests(verifier).items()}
    if f"{TESTS}/test.sh" not in hidden:
        raise InvalidTaskError(f"{folder}: there is no tests/test.sh")
    variables = _plain_variables(path, "verifier.env", verifier_data.get("env", {}))
    patches = sorted((folder / "solution").glob("*.patch"))
    name = str(_table(data, "task").get("name", folder.name))
    metadata = _table(data, "metadata")
    return Task(
        task_id=name.rpartition("/")[2],
        tree=agent.tree(),
        problem_statement=_instruction(folder / _INSTRUCTION),
        gold_patch=patches[0].read_text(encoding="utf-8") if len(patches) == 1 else "",
        test_patch=Patch.between({}, hidden).text,
        fail_to_pass=(REWARD,),
        repo=str(metadata.get("repo", "")) or name.partition("/")[0],
        language=str(metadata.get("language", "")) or "python",
        image_path=agent.workdir,
        interpreter=agent.interpreter,
        install_commands=tuple(dict.fromkeys((*agent.commands, *verifier.commands))),
        runner="harbor",
        test_command=shlex.join(["env", *(f"{k}={v}" for k, v in variables.items()), _SCRIPT]),
        grading_timeout_s=float(verifier_data.get("timeout_sec", _TIMEOUT_S)),
        difficulty=str(metadata.get("difficulty", "")),
        split=str(metadata.get("split", "")),
        created_at=str(metadata.get("created_at", "")),
    )


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


def _images(path: Path, data: Mapping[str, Any]) -> tuple[Dockerfile, Dockerfile]:
    """Returns the environment of the agent, and that of the tests."""
    environment, image = path.parent / "environment", _value(data, "environment.docker_image")
    if (environment / "Dockerfile").is_file():
        agent = read_dockerfile(environment / "Dockerfile")
    elif image:
        where = f"{path}: field 'environment.docker_image'"
        agent = Dockerfile(interpreter=base_interpreter(str(image), where))
        agent.copies = [(environment, "")] if environment.is_dir() else []
    else:
        raise InvalidTaskError(f"{path.parent}: there is no environment/Dockerfile")
    agent.workdir = str(_value(data, "environment.workdir") or agent.workdir)
    agent.copies = [(source, target or agent.workdir) for source, target in agent.copies]
    verifier = agent
    tests = path.parent / "tests"
    is_separate = _value(data, "verifier.environment_mode") == "separate"
    if (tests / "Dockerfile").is_file() and (is_separate or _value(data, "verifier.environment")):
        verifier = read_dockerfile(tests / "Dockerfile")
        _check_alike(tests / "Dockerfile", agent, verifier)
    else:
        verifier = Dockerfile(copies=[(tests, "/tests")])
    _check_paths(path, data, agent.workdir, [*agent.copies, *verifier.copies])
    _plain_variables(path, "ENV", {**agent.env, **verifier.env})
    _plain_variables(path, "environment.env", _value(data, "environment.env") or {})
    return agent, verifier


def _check_alike(path: Path, agent: Dockerfile, verifier: Dockerfile) -> None:
    if verifier.interpreter != agent.interpreter:
        raise InvalidTaskError(
            f"{path}: FROM must have the Python of environment/Dockerfile, as a task has one "
            f"environment; got {verifier.interpreter!r} and {agent.interpreter!r}"
        )


def _check_paths(
    path: Path, data: Mapping[str, Any], workdir: str, copies: list[tuple[Path, str]]
) -> None:
    """Refuses files outside the project and the tests: only a patch of the project is graded."""
    if workdir == "/":
        raise InvalidTaskError(f"{path.parent}: WORKDIR must be a folder below /, got '/'")
    for file, target in copies:
        if not (is_below(target, workdir) or is_below(target, "/tests")):
            raise InvalidTaskError(
                f"{file}: COPY must lead into {workdir} or /tests, got {target!r}"
            )
    for artifact in data.get("artifacts", []):
        source = str(artifact.get("source", "") if isinstance(artifact, Mapping) else artifact)
        if not (is_below(source, workdir) or is_below(source, _CONVENTION)):
            raise _refusal(path, "artifacts", source)


def _plain_variables(path: Path, place: str, variables: Mapping[str, Any]) -> dict[str, str]:
    """Returns variables for the tests; refuses those that the agent's commands would miss."""
    for name, value in variables.items():
        of_tests_alone = place.startswith("verifier.")
        if "${" in str(value) or not (of_tests_alone or _PLAIN_VARIABLES.match(name)):
            raise _refusal(path, place, f"{name}={value}")
    return {name: str(value) for name, value in variables.items()}


def _tests(verifier: Dockerfile) -> dict[str, str]:
    """Returns the text of all files that the verifier has below /tests, by path there."""
    found = {}
    for source, target in verifier.copies:
        if is_below(target, "/tests"):
            for file in sorted(source.rglob("*")) if source.is_dir() else [source]:
                if file.is_file():
                    place = PurePosixPath(target, file.relative_to(source))
                    found[str(place.relative_to("/tests"))] = read_utf8(file)
    return found


def _instruction(path: Path) -> str:
    """Returns what the agent reads: without the canaries at its beginning."""
    if not path.is_file():
        raise InvalidTaskError(f"{path} is missing")
    lines = read_utf8(path).splitlines()
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
