"""Batches of results, actions, seeds and options, as Gymnasium's own vector envs lay them out."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeGuard

import numpy as np
from gymnasium import Space
from gymnasium.error import CustomSpaceError
from gymnasium.vector.utils import concatenate, create_empty_array, iterate
from numpy.typing import NDArray

from coding_gym.arguments import is_integer
from coding_gym.errors import InvalidArgumentError
from coding_gym.vector.slots import Transition

Seed = int | Sequence[int | None] | NDArray[np.integer[Any]] | None
Batch = tuple[Any, NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_], dict[str, Any]]


def merge_infos(infos: Iterable[tuple[int, dict[str, Any]]], size: int) -> dict[str, Any]:
    """Returns infos of single envs as one of arrays of shape (size,), each with its ``_key`` mask.

    The arrays are those of Gymnasium's vector envs. Where the values of a key are of several types,
    such as numbers and None, which those cannot merge, the array is one of objects.

    Args:
        infos: Pairs of the place in the batch and the info.
        size: Length of the batch.
    """
    values: dict[str, dict[int, Any]] = {}
    for place, info in infos:
        for key, value in info.items():
            values.setdefault(key, {})[place] = value
    merged: dict[str, Any] = {}
    for key, by_place in values.items():
        mask = np.zeros(size, np.bool_)
        mask[list(by_place)] = True
        merged[key], merged[f"_{key}"] = _merged(by_place, size), mask
    return merged


def _merged(by_place: Mapping[int, Any], size: int) -> Any:
    """Returns the values of one key by their places in the batch."""
    first, kinds = next(iter(by_place.values())), {type(value) for value in by_place.values()}
    if kinds == {dict}:
        return merge_infos(by_place.items(), size)
    array: NDArray[Any] = np.full(size, None, dtype=object)
    if len(kinds) == 1 and isinstance(first, np.ndarray):
        array = np.zeros((size, *first.shape), first.dtype)
    elif len(kinds) == 1 and (type(first) in (int, float, bool) or isinstance(first, np.number)):
        array = np.zeros(size, type(first))
    for place, value in by_place.items():
        array[place] = value
    return array


def stack(space: Space[Any], observations: Sequence[Any]) -> Any:
    """Returns observations of ``space`` as one batch in memory of its own."""
    empty: Any = create_empty_array(space, n=len(observations), fn=np.zeros)
    return concatenate(space, observations, empty)


def to_batch(space: Space[Any], transitions: Sequence[Transition]) -> Batch:
    """Returns M transitions, of observations in ``space``, as ``step`` does: arrays of length M."""
    return (
        stack(space, [transition.observation for transition in transitions]),
        np.array([transition.reward for transition in transitions], np.float64),
        np.array([transition.terminated for transition in transitions], np.bool_),
        np.array([transition.truncated for transition in transitions], np.bool_),
        merge_infos(enumerate(transition.info for transition in transitions), len(transitions)),
    )


def unstack(space: Space[Any], actions: Any, size: int) -> list[Any]:
    """Returns the single actions of a batch.

    Args:
        space: The batched action space of all envs.
        actions: A batch of that form, of ``size`` actions.
        size: How many actions are wanted.

    Raises:
        InvalidArgumentError: It is a single text, no batch, or of another size.
    """
    wanted = f"actions must be a batch of {size}, one for each env"
    if isinstance(actions, str):  # it would be taken for a batch of its characters
        raise InvalidArgumentError(f"{wanted}, got one text; give a list of texts")
    try:
        single = list(iterate(space, actions))
    except (CustomSpaceError, TypeError, KeyError, ValueError) as error:
        raise InvalidArgumentError(f"{wanted}, got {type(actions).__name__}") from error
    if len(single) != size:
        raise InvalidArgumentError(f"{wanted}, got {len(single)}")
    return single


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
    seeds: list[int | None] = []
    if seed is None:
        seeds = [None] * num_groups
    elif _is_seed(seed):
        seeds = [int(seed) + number for number in range(num_groups)]
    elif isinstance(seed, list | tuple | np.ndarray) and all(
        one is None or _is_seed(one) for one in seed
    ):
        seeds = [None if one is None else int(one) for one in seed]
    if len(seeds) != num_groups:
        each = "env" if group_size == 1 else "group"
        raise InvalidArgumentError(
            f"seed must be None, an integer of at least 0, or a list of {num_groups}, one for each "
            f"{each}, got {seed!r}"
        )
    return [one for one in seeds for _ in range(group_size)]


def _is_seed(value: object) -> TypeGuard[int]:
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
    if options is not None and not isinstance(options, Mapping):
        raise InvalidArgumentError(f"reset options must be a mapping, got {options!r}")
    if options is None or "reset_mask" not in options:
        return list(range(num_envs)), None if options is None else dict(options)
    env_options = dict(options)
    mask = env_options.pop("reset_mask")
    fits = isinstance(mask, np.ndarray) and mask.dtype == np.bool_ and mask.shape == (num_envs,)
    if not fits or not mask.any():
        raise InvalidArgumentError(
            f"reset_mask must be a bool array of shape ({num_envs},) with at least one True, "
            f"got {mask!r}"
        )
    return np.flatnonzero(mask).tolist(), env_options
