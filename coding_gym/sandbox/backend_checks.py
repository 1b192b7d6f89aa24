"""Shared by all backends: the probe, the checks of specs and arguments, output as text."""

import os
from codecs import getincrementaldecoder
from collections.abc import Callable, Collection, Mapping

from coding_gym.arguments import at_least_one, positive_seconds
from coding_gym.errors import InvalidArgumentError, SandboxError, SandboxUnavailableError
from coding_gym.sandbox.protocol import (
    DEFAULT_MAX_OUTPUT_BYTES,
    DEFAULT_TIMEOUT_S,
    Probe,
    Promise,
    Sandbox,
)
from coding_gym.sandbox.spec import SHELLS, WORKDIR, SandboxSpec

_TIMEOUT_S = 10.0
RUN_AGAIN = "run it again; if it keeps failing, report it with this message"
MAX_COMMAND_BYTES = 1 << 20
MAX_DATA_BYTES = 64 << 20
_CONTINUATION_BITS, _CONTINUATION = 0xC0, 0x80


def failed_probe(open_sandbox: Callable[[SandboxSpec], Sandbox]) -> Probe | None:
    """Opens a throw-away sandbox, runs a command in it and closes it.

    Args:
        open_sandbox: The backend's own ``open``.

    Returns:
        The failure with its remedy; None where all went well.
    """
    try:
        with open_sandbox(SandboxSpec()) as sandbox:
            result = sandbox.run("echo works", timeout_s=_TIMEOUT_S)
        if result.output != "works\n":
            raise SandboxError(f"a first command printed {result.output!r}")
    except SandboxUnavailableError as error:
        remedy = error.remedy or RUN_AGAIN
        return Probe(available=False, detail=error.problem, remedy=remedy)
    except SandboxError as error:
        return Probe(available=False, detail=str(error), remedy=RUN_AGAIN)
    return None


def check_spec(spec: SandboxSpec, *, backend: str, missing: Collection[Promise]) -> None:
    """Checks a spec before a sandbox is opened.

    Args:
        spec: The spec.
        backend: The backend's name, for the message.
        missing: The promises that the backend never keeps.

    Raises:
        InvalidArgumentError: A layer or mount does not exist, a variable cannot be passed to a
            process, or the spec needs one of the missing promises.
    """
    check_env(spec.env)
    for path in (*spec.layers, *(mount.source for mount in spec.mounts)):
        if not path.exists():
            raise InvalidArgumentError(f"the sandbox's layer or mount {path} does not exist")
    if spec.image and Promise.OWN_IMAGE in missing:
        raise InvalidArgumentError(
            f"the {backend!r} sandbox cannot run the image {spec.image!r}; use 'namespace' or "
            "'docker'"
        )
    if check_shell(spec.shell) == "persistent" and Promise.PERSISTENT_SHELL in missing:
        raise InvalidArgumentError(
            f"the {backend!r} sandbox has no persistent shells; use shell='fresh', or 'namespace'"
        )


def command_bytes(command: str) -> bytes:
    """Returns a command's text in UTF-8; a lone surrogate, which a policy may emit, passes.

    Raises:
        InvalidArgumentError: A NUL, which no command line can hold, or too long a text.
    """
    data = command.encode("utf-8", "surrogatepass")
    if b"\0" in data:
        raise InvalidArgumentError("command must not contain a NUL byte")
    if len(data) > MAX_COMMAND_BYTES:
        raise InvalidArgumentError(
            f"command must be at most {MAX_COMMAND_BYTES} bytes, got {len(data)}; "
            "write a script with write_file and run that"
        )
    return data


def prepare_run(
    command: str,
    timeout_s: float = DEFAULT_TIMEOUT_S,
    max_output_bytes: int = DEFAULT_MAX_OUTPUT_BYTES,
    cwd: str | None = None,
    env: Mapping[str, str] | None = None,
    stdin: bytes = b"",
) -> tuple[bytes, str, dict[str, str]]:
    """Returns a command's text, folder and variables, from the arguments of `Sandbox.run`.

    Raises:
        InvalidArgumentError: No backend can run that.
    """
    text = command_bytes(command)
    positive_seconds("timeout_s", timeout_s)
    at_least_one("max_output_bytes", max_output_bytes)
    check_data(stdin)
    if cwd is not None:
        check_path(cwd)
    check_env(env or {})
    return text, cwd or WORKDIR, dict(env or {})


def check_path(path: str) -> None:
    """Raises InvalidArgumentError for a path that no system call takes."""
    if not path or not _can_be_passed(path):
        raise InvalidArgumentError(
            f"a path must be non-empty, Unicode and free of NUL bytes, got {path!r}"
        )


def check_data(data: bytes) -> None:
    """Raises InvalidArgumentError for data that is too long for one call."""
    if len(data) > MAX_DATA_BYTES:
        raise InvalidArgumentError(
            f"at most {MAX_DATA_BYTES} bytes go into a sandbox at once, got {len(data)}"
        )


def check_max_bytes(max_bytes: int) -> None:
    """Raises InvalidArgumentError for a number that is no file size."""
    if type(max_bytes) is not int or max_bytes < 0:
        raise InvalidArgumentError(f"max_bytes must be an integer of at least 0, got {max_bytes!r}")


def check_shell(shell: str) -> str:
    """Returns a kind of shell; raises InvalidArgumentError for an unknown one."""
    if shell not in SHELLS:
        raise InvalidArgumentError(f"shell must be one of {', '.join(SHELLS)}, got {shell!r}")
    return shell


def check_env(env: Mapping[str, str]) -> None:
    """Raises InvalidArgumentError for variables that no process can have."""
    for name, value in env.items():
        if not name or "=" in name or not _can_be_passed(name + value):
            raise InvalidArgumentError(f"not an environment variable: {name!r}={value!r}")


def _can_be_passed(text: str) -> bool:
    """Whether text can be an argument of a system call; escaped bytes can."""
    try:
        return b"\0" not in os.fsencode(text)
    except UnicodeEncodeError:
        return False


def render_output(head: bytes, tail: bytes, num_bytes: int) -> tuple[str, bool]:
    """Returns a command's output as text, and whether its middle was left out.

    Args:
        head: The first bytes kept.
        tail: The last bytes kept.
        num_bytes: Size of the whole output.
    """
    if len(head) + len(tail) == num_bytes:
        return (head + tail).decode("utf-8", "replace"), False
    # A character that the cut splits is dropped.
    decoder = getincrementaldecoder("utf-8")("replace")
    first = decoder.decode(head)
    pending, _ = decoder.getstate()
    start = 0
    while start < min(3, len(tail)) and tail[start] & _CONTINUATION_BITS == _CONTINUATION:
        start += 1
    last = tail[start:].decode("utf-8", "replace")
    num_dropped = num_bytes - len(head) - len(tail) + len(pending) + start
    return f"{first}\n[... {num_dropped} bytes left out ...]\n{last}", True
