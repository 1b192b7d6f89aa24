"""The env that a record was made in, made again as far as the word of a file is followed."""

import json
from collections.abc import Mapping
from dataclasses import asdict, fields
from typing import Any

from coding_gym.arguments import positive_seconds
from coding_gym.envs.coding_repair import CodingRepairEnv
from coding_gym.episode.limits import Limits
from coding_gym.errors import InvalidArgumentError, UnknownNameError
from coding_gym.sandbox.options import SandboxOptions
from coding_gym.sandbox.protocol import DEFAULT_TIMEOUT_S
from coding_gym.sandbox.spec import SandboxLimits
from coding_gym.task import Task
from coding_gym.text.tokenizers import DEFAULT_TOKENIZER
from coding_gym.trajectory import Trajectory

_CLOCK = "max_seconds"


def recorded_env(
    trajectory: Trajectory,
    task: Task,
    *,
    sandbox: str | Mapping[str, Any],
    tokenizer: str | None,
    trust_limits: bool,
) -> tuple[CodingRepairEnv, str]:
    """Returns the env without its wrappers, and which bounds of the record it does not have.

    The arguments are those of `coding_gym.rollout.replay`.

    Raises:
        InvalidArgumentError: The record names what there is not, or what only the caller may.
    """
    settings = trajectory.settings
    given = {"name": sandbox} if isinstance(sandbox, str) else dict(sandbox)
    _check_image(settings["sandbox"], given)
    chosen = tokenizer_of(trajectory, tokenizer)
    try:
        recorded = {name: v for name, v in settings["sandbox"].items() if name not in given}
        kept, loose = _sandbox_of(recorded, trust_limits=trust_limits)
        timeout_s = positive_seconds("command_timeout_s", settings["command_timeout_s"])
        if timeout_s > DEFAULT_TIMEOUT_S and not trust_limits:
            loose.append(f"command_timeout_s={timeout_s:g}")
            timeout_s = DEFAULT_TIMEOUT_S
        core = CodingRepairEnv(
            tasks=[task.to_row()],
            toolset=trajectory.toolset,
            tokenizer=chosen,
            tool_format=settings["tool_format"],
            sandbox={**kept, **given},
            command_timeout_s=timeout_s,
        )
        core.limits = _limits(settings["limits"])
    except UnknownNameError as problem:
        whose = "" if tokenizer is None else "--tokenizer, or "
        raise InvalidArgumentError(f"{whose}the file names what there is not: {problem}") from None
    return core, _told(loose)


def tokenizer_of(trajectory: Trajectory, tokenizer: str | None) -> str:
    """Returns the name of the tokenizer for a record; of its own accord only the bundled one.

    Any other may be a folder of this machine, or a download.

    Args:
        trajectory: The record.
        tokenizer: What the caller names, or None.

    Raises:
        InvalidArgumentError: The caller names none, and the record another one than the bundled.
    """
    if tokenizer is None and trajectory.tokenizer != DEFAULT_TOKENIZER:
        raise InvalidArgumentError(
            f"it names the tokenizer {trajectory.tokenizer!r:.80}, and on the word of a file only "
            f"{DEFAULT_TOKENIZER!r} is loaded; if you trust that, say it by --tokenizer"
        )
    return trajectory.tokenizer if tokenizer is None else tokenizer


def _check_image(recorded: Mapping[str, Any], given: Mapping[str, Any]) -> None:
    if recorded.get("image") and not given.get("image"):
        raise InvalidArgumentError(
            f"it was recorded in the image {recorded['image']!r}; if you trust that, give "
            f"--sandbox '{json.dumps({'image': recorded['image']})}'"
        )


def _sandbox_of(
    recorded: Mapping[str, Any], *, trust_limits: bool
) -> tuple[dict[str, Any], list[str]]:
    """Returns shell and limits of a recorded sandbox, and the limits that are left out."""
    options = SandboxOptions.parse(
        {name: recorded[name] for name in ("shell", "limits") if name in recorded}
    )
    default = asdict(SandboxLimits())
    loose = {
        name: bound
        for name, bound in options.limits.items()
        if not trust_limits and _is_looser(bound, default[name])
    }
    limits = {name: bound for name, bound in options.limits.items() if name not in loose}
    return {"shell": options.shell, "limits": limits}, [f"{n}={b}" for n, b in loose.items()]


def _is_looser(bound: float | None, default: float | None) -> bool:
    return default is not None and (bound is None or bound > default)


def _limits(recorded: Mapping[str, Any]) -> Limits:
    """Returns the bounds of the record, without those that the clock decides."""
    known = {one.name for one in fields(Limits)}
    strange = ", ".join(sorted(recorded.keys() - known))
    if strange:
        raise InvalidArgumentError(f"this version knows no limit {strange}")
    return Limits(**{name: value for name, value in recorded.items() if name != _CLOCK})


def _told(loose: list[str]) -> str:
    if not loose:
        return ""
    return f"not followed, as looser than the defaults: {', '.join(loose)}; see --trust-limits"
