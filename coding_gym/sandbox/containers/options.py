"""What the daemon is asked for, worked out from a spec."""

import math
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from coding_gym.errors import InvalidArgumentError
from coding_gym.host import network as host_network
from coding_gym.sandbox.containers.prepare import FIRST_BASH, check_alias
from coding_gym.sandbox.environment import environment, mounted_packages
from coding_gym.sandbox.results import check_env
from coding_gym.sandbox.spec import Mount, SandboxSpec

_LOOP = Path(__file__).with_name("loop.sh").read_text(encoding="utf-8")
_HOSTNAME = "sandbox"


def check_spec(spec: SandboxSpec) -> None:
    """Raises InvalidArgumentError for what cannot be opened on any machine."""
    check_env(spec.env)
    if spec.shell == "persistent":
        raise InvalidArgumentError(
            "the 'docker' sandbox has no shell='persistent'; use 'fresh', or another backend"
        )
    check_alias(spec.workspace_alias)
    for layer in spec.layers:
        if not layer.is_dir():
            raise InvalidArgumentError(f"the sandbox's layer {layer} is not a folder")
    for mount in spec.mounts:
        if not mount.source.exists():
            raise InvalidArgumentError(f"the sandbox's mount {mount.source} does not exist")
        target = PurePosixPath(mount.target)
        if not target.is_absolute() or ".." in target.parts or target == PurePosixPath("/"):
            raise InvalidArgumentError(
                f"a mount's target must be an absolute path below /, got {mount.target!r}"
            )


def container_env(
    spec: SandboxSpec, image_env: Mapping[str, str] | None = None, user: str = ""
) -> dict[str, str]:
    """Returns the variables of a container's commands.

    Args:
        spec: Gives ``path`` and ``env``, which win.
        image_env: Those of the image, where they are known.
        user: The name that the image gives its user; "" where it is not known.
    """
    network = host_network.settings().env if spec.network else {}
    return network | mounted_packages(spec) | environment(spec, image_env=image_env, user=user)


def create_options(
    engine_api: Any,
    spec: SandboxSpec,
    *,
    env: dict[str, str],
    user: str,
    mounts: tuple[Mount, ...],
    labels: dict[str, str],
) -> dict[str, Any]:
    """Returns the keyword arguments of docker-py's ``create_container``, but for the image.

    Args:
        engine_api: The low-level client, which knows its version's form of some of them.
        spec: What is wanted.
        env: All variables.
        user: Uid and gid, with a colon between.
        mounts: Those that the daemon binds.
        labels: Whose it is.
    """
    binds = [_bind(mount) for mount in mounts]
    return {
        "entrypoint": [FIRST_BASH, "-c", _LOOP, "bash"],
        "command": [],
        "environment": env,
        "user": user,
        "hostname": _HOSTNAME,
        "working_dir": "/",
        "stdin_open": True,
        "labels": labels,
        "host_config": engine_api.create_host_config(**_host_options(spec), mounts=binds),
    }


def _host_options(spec: SandboxSpec) -> dict[str, Any]:
    limits = spec.limits
    ulimits = {
        "core": 0,
        "fsize": limits.file_bytes,
        "nofile": limits.num_open_files,
    }
    options: dict[str, Any] = {
        "network_mode": "host" if spec.network else "none",
        "cap_drop": ["ALL"],
        "security_opt": ["no-new-privileges:true"],
        # One more for the first process.
        "pids_limit": limits.num_processes + 1,
        "mem_limit": limits.memory_bytes,
        "memswap_limit": limits.memory_bytes,
        "shm_size": limits.disk_bytes,
        "tmpfs": {"/tmp": f"rw,exec,nosuid,nodev,mode=1777,size={limits.disk_bytes}"},  # noqa: S108 - inside
        "ulimits": [{"Name": name, "Soft": n, "Hard": n} for name, n in ulimits.items()],
        # Whatever is printed goes through the channel; a log would fill the host's disk.
        "log_config": {"Type": "none"},
        "auto_remove": True,
    }
    if limits.num_cpus is not None:
        options["nano_cpus"] = math.ceil(limits.num_cpus * 1e9)
    return options


def _bind(mount: Mount) -> dict[str, Any]:
    return {
        "Type": "bind",
        "Source": str(mount.source.resolve()),
        "Target": mount.target,
        "ReadOnly": not mount.writable,
    }
