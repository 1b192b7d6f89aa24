"""Starting the two processes of a ``landlock`` sandbox, which end with its channel."""

from contextlib import ExitStack
from pathlib import Path
from typing import Any

from coding_gym.errors import SandboxError
from coding_gym.sandbox import cgroups
from coding_gym.sandbox.channel import Channel
from coding_gym.sandbox.removal import remove_folder
from coding_gym.sandbox.spec import SandboxLimits
from coding_gym.sandbox.standalone import Standalone
from coding_gym.sandbox.zygote import wire

_MAIN = Path(__file__).parents[1] / "zygote" / "landlock" / "__main__.py"
_END_TIMEOUT_S = 5.0


def start(folder: Path, orders: dict[str, Any], limits: SandboxLimits) -> Channel:
    """Starts the processes of a sandbox and waits until the first of them is ready.

    Args:
        folder: Everything that the sandbox wrote; goes with it, or with an error.
        orders: What the processes are told.
        limits: For its control group, where groups can be had.

    Raises:
        SetupError: A step of the set-up failed.
        SandboxError: The processes could not be started.
    """
    with ExitStack() as undo:
        undo.callback(remove_folder, folder)
        try:
            group = cgroups.make_group(limits)
            if group is not None:
                undo.callback(group.close)
            process = Standalone(_MAIN)
            undo.callback(process.end, _END_TIMEOUT_S)
            undo.callback(process.channel.close)
            if group is not None:
                group.add(process.pid)
        except OSError as error:
            raise SandboxError(f"cannot start a process: {error}") from error
        channel = Channel(process.channel, undo)
    try:
        channel.wait_until_ready(wire.pack(orders))
    except SandboxError as error:
        reason = process.last_words(otherwise=str(error))
        raise SandboxError(f"the sandbox did not start: {reason}") from error
    finally:
        process.stop_listening()
    return channel
