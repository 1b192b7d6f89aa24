"""Harnesses (command-line agents, which TOML files describe) and the player that runs them.

A harness is a TOML file with packages, a command, environment variables and files:

    name = "my-agent"
    pip = ["my-agent==1.2"]
    command = "my-agent --model openai/{model} {problem}"

    [env]
    OPENAI_BASE_URL = "{base_url}"
    OPENAI_API_KEY = "{api_key}"

    [files]  # paths relative to the home folder
    ".my-agent/settings.json" = '{"telemetry": false}'

The command, the variables and the files can contain ``{base_url}``, ``{api_key}`` and ``{model}``;
in the command, the problem statement replaces ``{problem}``. The sandbox can connect only to the
capture endpoint (`coding_gym.agents.capture`), which forwards the harness's requests to the model.
"""

import logging
import re
import shlex
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import Any

from coding_gym.agents.capture import CapturedRequests, CaptureEndpoint
from coding_gym.agents.model_errors import public_text
from coding_gym.agents.player import LiveEpisode, Player
from coding_gym.arguments import unknown_name
from coding_gym.calls import ExecResult
from coding_gym.episode import Episode, Limits
from coding_gym.errors import CodingGymError, InfrastructureError, InvalidArgumentError
from coding_gym.json_record import JsonRecord
from coding_gym.sandbox import SandboxSpec, default_interpreter, get_backend
from coding_gym.sandbox.folder_cache import FolderCache, build_sandbox, content_key
from coding_gym.sandbox.ownership import cache_folder, remove_folder
from coding_gym.sandbox.protocol import SandboxBackend
from coding_gym.sandbox.spec import Mount, SandboxLimits
from coding_gym.trajectory import StopReason
from coding_gym.workspace.installing import BUILD_TIMEOUT_S, install

_log = logging.getLogger(__name__)

LAYER = "/opt/harness"
"""The folder of the installed packages in a sandbox."""

_SCHEMA = 1
_PRESETS = files("coding_gym.agents") / "presets"
_PINNED = re.compile(r".+(==[^*]+|@\d[^/ ]*|@[0-9a-f]{7,}|\.whl|\.tgz)")
_UNKNOWN = re.compile(r"(?<!\$)\{(?!(?:base_url|api_key|model)\})[a-z_]+\}")  # a placeholder
_SCRATCH = "/opt/scratch"
_PATHS = f"{LAYER}/bin:{LAYER}/node_modules/.bin"
_BUILD_VARIABLES = {
    "TMPDIR": _SCRATCH,
    "XDG_CACHE_HOME": _SCRATCH,
    "npm_config_cache": _SCRATCH,
    "NODE_EXTRA_CA_CERTS": "/etc/ssl/certs/ca-certificates.crt",  # npm needs this
}
_BUILD_LIMITS = SandboxLimits(
    disk_bytes=4 << 30, num_inodes=1_000_000, num_processes=1024, file_bytes=4 << 30
)

_PORT = 8765
_BASE_URL = f"http://127.0.0.1:{_PORT}/v1"
_UNSUPPORTED = ("warn_tokens", "warn_tool_calls", "max_repeats", "max_format_errors")
_TIMEOUT_S = 3600.0  # time limit of an episode without `max_seconds`
_TAIL_CHARS = 4096  # characters of the harness's output in the record
# The subshell kills the command when the endpoint closes its connection.
_SCRIPT = f"""
(
  exec 3<>/dev/tcp/127.0.0.1/{_PORT} || exit
  read -r <&3
  kill -KILL $$
) > /dev/null 2>&1 &
watch=$!
disown  # otherwise bash prints the killed command
(
{{command}}
)
code=$?
kill -KILL $watch
exit $code
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Harness(JsonRecord):
    """Installation and command of a command-line agent.

    Attributes:
        name: The agent's name in records.
        command: A shell command, run in the repository; the problem statement replaces
            ``{problem}``. The values of placeholders are quoted for the shell.
        pip: Python packages with their versions, such as ``"nano-agent==5.0.0"``.
        npm: Node packages with their versions, such as ``"@openai/codex@0.171.0"``.
        env: Environment variables of the command.
        files: Texts of files, by their path relative to the home folder.
        failure: A regular expression, or "". A run has failed if its output contains a match, or if
            its exit code is not 0.

    Raises:
        InvalidArgumentError: A value is invalid.
    """

    name: str
    command: str
    pip: tuple[str, ...] = ()
    npm: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)
    failure: str = ""

    def __post_init__(self) -> None:
        """Checks the values."""
        if "{problem}" not in self.command:
            raise InvalidArgumentError(f"command must contain {{problem}}, got {self.command!r}")
        if names := [name for name in (*self.pip, *self.npm) if not _PINNED.fullmatch(name)]:
            raise InvalidArgumentError(
                f"packages in pip and npm must have versions, got {', '.join(names)}; "
                "write pip packages as name==1.0 and npm packages as name@1.0"
            )
        if match := _UNKNOWN.search(" ".join(self.env.values())):
            raise InvalidArgumentError(
                f"env placeholders must be {{base_url}}, {{api_key}} or {{model}}, got {match[0]}"
            )
        try:
            re.compile(self.failure)
        except re.error as problem:
            raise InvalidArgumentError(f"failure must be a regular expression: {problem}") from None

    def filled(self, values: Mapping[str, str]) -> "Harness":
        """Returns the harness with placeholders, such as ``{model}``, replaced by these values."""

        def fill(text: str, to_text: Callable[[str], str] = str) -> str:
            for name, value in values.items():
                text = text.replace(f"{{{name}}}", to_text(value))
            return text

        return replace(
            self,
            command=fill(self.command, shlex.quote),
            env={name: fill(text) for name, text in self.env.items()},
            files={path: fill(text) for path, text in self.files.items()},
        )

    def shell_command(self, problem: str) -> str:
        """Returns the shell command that runs the agent on a problem statement.

        The harness's programs are last in ``PATH``, so ``python`` is the task's interpreter.
        """
        command = self.command.replace("{problem}", shlex.quote(problem))
        return f'export PATH="$PATH:{_PATHS}"\n{command}'

    def is_failure(self, exit_code: int, output: str) -> bool:
        """Returns whether a run with this exit code and output has failed; see ``failure``."""
        return exit_code != 0 or bool(self.failure and re.search(self.failure, output))


def harness_names() -> tuple[str, ...]:
    """Returns the names of the presets."""
    return tuple(sorted(file.name.removesuffix(".toml") for file in _PRESETS.iterdir()))


def get_harness(name: str) -> Harness:
    """Returns a preset by name, or a harness from a TOML file.

    Raises:
        UnknownNameError: No preset has this name.
        InvalidArgumentError: The file cannot be read, or a value is invalid.
    """
    is_file = name.endswith(".toml")
    if not is_file and name not in harness_names():
        raise unknown_name("harness", name, (*harness_names(), "a file FILE.toml"))
    file = Path(name).expanduser() if is_file else _PRESETS / f"{name}.toml"
    try:
        data = tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as problem:
        raise InvalidArgumentError(f"the harness {name} cannot be read: {problem}") from None
    return Harness.from_arguments(data, f"harness {name}")


def with_layer(harness: Harness, backend: SandboxBackend, spec: SandboxSpec) -> SandboxSpec:
    """Returns a sandbox's spec with the packages of a harness as a read-only mount.

    The first call for these packages installs the packages, in a sandbox with network.

    Raises:
        TemplateError: The installation failed; the message names the log.
        SandboxError: The sandbox for the installation could not be opened.
    """
    if not (harness.pip or harness.npm):
        return spec
    python = default_interpreter()
    cache = cache_folder()
    key = content_key(
        _SCHEMA, harness.pip, harness.npm, [str(python.executable), python.version], backend.owner()
    )

    def build(folder: Path) -> None:
        packages = ", ".join((*harness.pip, *harness.npm))
        _log.warning("installing %s with dependencies; later runs use this installation", packages)
        layer, scratch = folder / "layer", folder / "scratch"
        build_spec = SandboxSpec(
            python=python, limits=_BUILD_LIMITS, network=True, env=_BUILD_VARIABLES
        )
        with build_sandbox(backend, build_spec, {LAYER: layer, _SCRATCH: scratch}) as sandbox:
            install(
                sandbox,
                _install_commands(harness, str(python.executable)),
                owner=f"harness {harness.name}",
                log=cache / "logs" / f"{key}.log",
                timeout_s=BUILD_TIMEOUT_S,
            )
        remove_folder(scratch)  # caches of pip and npm

    mounts = [
        Mount(source=FolderCache(cache / "harnesses").get(key, build) / "layer", target=LAYER)
    ]
    has_interpreter = spec.python is not None and spec.python.prefix == python.prefix
    if harness.pip and not has_interpreter and python.prefix != Path("/usr"):
        mounts.append(Mount(source=python.prefix, target=str(python.prefix)))
    return replace(spec, mounts=(*spec.mounts, *mounts))


def _install_commands(harness: Harness, python: str) -> list[str]:
    commands = []
    if harness.pip:
        commands.append(f"{shlex.quote(python)} -m venv --symlinks {LAYER}")
        commands.append(f"{LAYER}/bin/python -m pip install {shlex.join(harness.pip)}")
    if harness.npm:
        commands.append(
            f"npm install --no-audit --no-fund --prefix {LAYER} {shlex.join(harness.npm)}"
        )
    return commands


class HarnessError(CodingGymError, RuntimeError):
    """A harness ended before the first reply of the model; the attempt has no verdict."""


class HarnessPlayer(Player):
    """Plays episodes with a harness that runs in the episode's sandbox.

    Each episode has a separate endpoint and API key. After a limit is reached or the model fails,
    all requests get error responses; ``grace_s`` seconds after the first of these responses, the
    harness is killed. The default of ``max_seconds`` is an hour. When the harness has ended, the
    tree is graded. Chat, tools and turns of the record come from the requests.

    Args:
        harness: The harness.
        agent: The agent whose model replies to the requests of the harness.
        grace_s: Seconds between the first of these error responses and the kill of the harness.
    """

    def __init__(self, harness: Harness, agent: Player, *, grace_s: float = 30.0) -> None:
        self.name, self.model = harness.name, agent.model
        self._harness, self._agent, self._grace_s = harness, agent, grace_s

    def describe(self) -> Mapping[str, Any]:
        """Returns the settings of the harness and of the agent whose model it uses."""
        return {**self._agent.describe(), "harness": self._harness.to_json()}

    def check(self, limits: Limits) -> None:
        """Raises InvalidArgumentError for limits that cannot be enforced on a harness."""
        if names := [name for name in _UNSUPPORTED if getattr(limits, name)]:
            raise InvalidArgumentError(
                f"a harness parses and runs its calls itself, so {', '.join(names)} cannot be "
                "enforced; remove these limits"
            )

    async def play(self, live: LiveEpisode) -> None:
        """Runs the harness in the sandbox until the harness ends, then grades the tree.

        Raises:
            HarnessError: The harness ended before the first reply of the model.
            ModelError: The model failed.
        """
        requests = CapturedRequests(live, self._agent.chat(live.seed))
        live.episode.harness = self.name
        async with CaptureEndpoint(requests, self._grace_s) as endpoint:
            await live.start(partial(self._change_spec, live.episode, endpoint.path))
            if live.ended:
                return
            result = await live.in_thread(self._run, live.episode, endpoint.api_key)
        if result is None:
            return
        if requests.failure:
            raise requests.failure
        await self._end(live, requests, result)

    def _change_spec(self, episode: Episode, socket: Path, spec: SandboxSpec) -> SandboxSpec:
        """Adds the harness and its endpoint to the spec of an episode's sandbox."""
        spec = with_layer(self._harness, get_backend(episode.config.sandbox.name), spec)
        return replace(spec, forwards={_PORT: socket})

    def _run(self, episode: Episode, api_key: str) -> ExecResult | None:
        """Runs the harness; if the sandbox died, returns None, and the episode has the failure."""
        values = {"base_url": _BASE_URL, "api_key": api_key, "model": self.model}
        harness = self._harness.filled(values)
        script = _SCRIPT.format(command=harness.shell_command(episode.task.problem_statement))
        max_seconds = episode.bounds.max_seconds
        timeout_s = _TIMEOUT_S if max_seconds is None else max_seconds + self._grace_s
        try:
            with episode.access() as context:
                sandbox = context.sandbox
                home = sandbox.run('printf %s "$HOME"').output
                for path, text in harness.files.items():
                    sandbox.write_file(f"{home}/{path}", text.encode())
                result = sandbox.run(script, timeout_s=timeout_s, env=dict(harness.env))
        except InfrastructureError:
            return None
        return replace(result, output=result.output.replace(api_key, "[key]"))

    async def _end(self, live: LiveEpisode, requests: CapturedRequests, result: ExecResult) -> None:
        """Ends and grades the episode; records the reason why the harness ended."""
        output = result.output[-_TAIL_CHARS:].strip() or "no output"
        outcome = public_text(f"exit code {result.exit_code}: {output}")
        if not (requests.num_replies or requests.is_too_long or requests.limit):
            raise HarnessError(f"{self.name} ended before the first reply of the model: {outcome}")
        reason = self._reason(requests, result)
        is_failure = reason is StopReason.STOPPED
        text = f"{self.name} has ended: {reason}"
        await live.stop(text if is_failure else f"{text}, {outcome}", reason)
        if live.episode.stop_reason is StopReason.STOPPED:
            _log.warning("%s, %s: %s", live.episode.task.task_id, self.name, outcome)
            live.error = outcome

    def _reason(self, requests: CapturedRequests, result: ExecResult) -> StopReason:
        """Returns the reached limit, ``STOPPED`` after a failed run, or ``SUBMITTED``."""
        if requests.limit:
            return requests.limit
        if result.timed_out:
            return StopReason.MAX_TIME
        is_failure = self._harness.is_failure(result.exit_code, result.output)
        return StopReason.STOPPED if is_failure else StopReason.SUBMITTED

    async def close(self) -> None:
        """Closes the agent whose model the harness uses; idempotent."""
        await self._agent.close()
