"""Seeds and options of a vector env's ``reset``."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from coding_gym.arguments import is_integer
from coding_gym.errors import InvalidArgumentError

Seed = int | Sequence[int | None] | NDArray[np.integer[Any]] | None


def seeds_of_slots(seed: Seed, num_envs: int, group_size: int) -> list[int | None]:
    """Returns a seed for each env; envs of one group have the same.

    Args:
        seed: None; a first seed, to which each further group adds one; or one for each group.
        num_envs: How many envs there are.
        group_size: How many of them make a group; 1 means that each is its own.

    Raises:
        InvalidArgumentError: It is none of these.
    """
    num_groups = num_envs // group_size
    seeds: Iterable[int | None]
    if seed is None:
        seeds = [None] * num_groups
    elif _is_seed(seed):
        seeds = [int(seed) + number for number in range(num_groups)]  # type: ignore[arg-type] # it is one
    elif (
        isinstance(seed, list | tuple | np.ndarray)
        and len(seed) == num_groups
        and all(one is None or _is_seed(one) for one in seed)
    ):
        seeds = [None if one is None else int(one) for one in seed]
    else:
        each = "env" if group_size == 1 else "group"
        raise InvalidArgumentError(
            f"seed must be None, an integer of at least 0, or a list of {num_groups}, one for each "
            f"{each}, got {seed!r}"
        )
    return [one for one in seeds for _ in range(group_size)]


def _is_seed(value: object) -> bool:
    return is_integer(value) and value >= 0


def split_options(
    options: Mapping[str, Any] | None, num_envs: int
) -> tuple[list[int], dict[str, Any] | None]:
    """Returns the envs to reset, and the options for each of them.

    Args:
        options: Options of an env, and ``reset_mask``, a bool array of shape (num_envs,), for only
            some of the envs, as Gymnasium's ``SyncVectorEnv`` takes it.
        num_envs: How many envs there are.

    Raises:
        InvalidArgumentError: The mask cannot be used.
    """
    if options is None:
        return list(range(num_envs)), None
    if not isinstance(options, Mapping):
        raise InvalidArgumentError(f"reset options must be a mapping, got {options!r}")
    if "reset_mask" not in options:
        return list(range(num_envs)), dict(options)
    mask = options["reset_mask"]
    fits = isinstance(mask, np.ndarray) and mask.dtype == np.bool_ and mask.shape == (num_envs,)
    if not fits or not mask.any():
        raise InvalidArgumentError(
            f"reset_mask must be a bool array of shape ({num_envs},) with at least one True, "
            f"got {mask!r}"
        )
    chosen = [int(index) for index in np.flatnonzero(mask)]
    return chosen, {key: value for key, value in options.items() if key != "reset_mask"}
