"""Whether a record has what a replay needs. It may come from anybody, and hold any JSON."""

from typing import Any

from coding_gym.errors import InvalidArgumentError
from coding_gym.trajectory import Trajectory

_NUMBER = (int, float)
_SETTINGS: dict[str, type | tuple[type, ...]] = {
    "task_digest": str,
    "tool_format": str,
    "limits": dict,
    "sandbox": dict,
    "command_timeout_s": _NUMBER,
}
_WRAPPERS = '[{"name": "TestPassReward", "kwargs": {"weight": 0.1}}, ...]'


def check_replayable(trajectory: Trajectory) -> None:
    """Looks whether a record has what `replay` needs; many files are JSON, and few are records.

    Raises:
        InvalidArgumentError: It has not.
    """
    settings: object = trajectory.settings
    if not settings:
        raise InvalidArgumentError(
            "it was recorded by a version that did not write how the env was made; record it again"
        )
    if not isinstance(settings, dict):
        raise InvalidArgumentError(f"settings must be an object, got {settings!r:.80}")
    for name, kind in _SETTINGS.items():
        if not isinstance(settings.get(name), kind):
            raise InvalidArgumentError(
                f"settings[{name!r}] is missing or of another kind, got {settings.get(name)!r:.80}"
            )
    _check_wrappers(settings.get("wrappers", []))
    _check_texts(trajectory)


def _check_wrappers(entries: object) -> None:
    if not isinstance(entries, list) or not all(map(_is_wrapper, entries)):
        raise InvalidArgumentError(
            f"settings['wrappers'] must be a list such as {_WRAPPERS}, got {entries!r:.80}"
        )


def _check_texts(trajectory: Trajectory) -> None:
    for name in ("toolset", "tokenizer"):
        value: object = getattr(trajectory, name)
        if not isinstance(value, str):
            raise InvalidArgumentError(f"{name} must be a name, got {value!r:.80}")
    if not all(_is_message(message) for message in trajectory.messages):
        raise InvalidArgumentError("messages must be objects with a role and a text as content")
    for number, turn in enumerate(trajectory.turns, 1):
        if not isinstance(turn.action, str) or not isinstance(turn.observation, str):
            raise InvalidArgumentError(f"turn {number} has no text for its action or observation")


def _is_wrapper(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and isinstance(value.get("name"), str)
        and isinstance(value.get("kwargs", {}), dict)
    )


def _is_message(value: Any) -> bool:
    return isinstance(value, dict) and all(
        isinstance(value.get(name), str) for name in ("role", "content")
    )
