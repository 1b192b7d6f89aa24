"""Batches of results, in the form of Gymnasium's vector envs."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from gymnasium import Space
from gymnasium.vector.utils import concatenate, create_empty_array
from numpy.typing import NDArray

from coding_gym.vector.slots import Transition

Batch = tuple[Any, NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_], dict[str, Any]]


def merge_infos(infos: Iterable[tuple[int, dict[str, Any]]], size: int) -> dict[str, Any]:
    """Merges infos of single envs into arrays of shape (size,); ``_key`` is the mask of ``key``.

    The arrays equal those of Gymnasium's vector envs. Gymnasium cannot merge values of several
    types, such as numbers and None; this function returns them as an array of objects.

    Args:
        infos: Pairs of the index in the batch and the info.
        size: Length of the batch.
    """
    values: dict[str, dict[int, Any]] = {}
    for index, info in infos:
        for key, value in info.items():
            values.setdefault(key, {})[index] = value
    arrays: dict[str, Any] = {}
    for key, by_index in values.items():
        mask = np.zeros(size, np.bool_)
        mask[list(by_index)] = True
        arrays[key], arrays[f"_{key}"] = _merged(by_index, size), mask
    return arrays


def _merged(by_index: Mapping[int, Any], size: int) -> Any:
    """Returns the values of one key by their index in the batch."""
    entry, types = next(iter(by_index.values())), {type(value) for value in by_index.values()}
    if types == {dict}:
        return merge_infos(by_index.items(), size)
    array: NDArray[Any] = np.full(size, None, dtype=object)
    if len(types) == 1 and isinstance(entry, np.ndarray):
        array = np.zeros((size, *entry.shape), entry.dtype)
    elif len(types) == 1 and (type(entry) in (int, float, bool) or isinstance(entry, np.number)):
        array = np.zeros(size, type(entry))
    for index, value in by_index.items():
        array[index] = value
    return array


def stack(space: Space[Any], observations: Sequence[Any]) -> Any:
    """Returns observations of ``space`` as one batch, copied to new memory."""
    empty_batch: Any = create_empty_array(space, n=len(observations), fn=np.zeros)
    return concatenate(space, observations, empty_batch)


def to_batch(space: Space[Any], transitions: Sequence[Transition]) -> Batch:
    """Returns M transitions in the form of ``step``: arrays of length M."""
    return (
        stack(space, [transition.observation for transition in transitions]),
        np.array([transition.reward for transition in transitions], np.float64),
        np.array([transition.terminated for transition in transitions], np.bool_),
        np.array([transition.truncated for transition in transitions], np.bool_),
        merge_infos(enumerate(transition.info for transition in transitions), len(transitions)),
    )
