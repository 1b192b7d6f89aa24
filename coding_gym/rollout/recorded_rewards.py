"""The wrappers that shaped recorded rewards, made again.

A record may come from anybody, so that an entry is made only where it names a reward of this
package: such wrappers write no file, import nothing, and ask nobody.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import gymnasium as gym

from coding_gym import wrappers
from coding_gym.errors import InvalidArgumentError, UnknownNameError


def rebuilt(
    env: gym.Env[Any, Any], entries: Iterable[Mapping[str, Any]]
) -> tuple[gym.Env[Any, Any], bool]:
    """Returns ``env`` in the wrappers of these entries, and whether these were all known.

    Args:
        env: What they go around.
        entries: Objects with a ``name`` and perhaps ``kwargs``, checked by `check_replayable`.

    Raises:
        InvalidArgumentError: The arguments of one cannot be used.
    """
    for entry in entries:
        name = entry["name"]
        kind = getattr(wrappers, name, None) if name in wrappers.__all__ else None
        if kind is None or not hasattr(kind, "shaping_weight"):
            return env, False
        try:
            env = kind(env, **entry.get("kwargs", {}))
        except (TypeError, UnknownNameError) as error:
            raise InvalidArgumentError(f"wrapper {name} cannot be made again: {error}") from error
    return env, True
