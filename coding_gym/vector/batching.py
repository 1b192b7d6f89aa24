"""From the results of single envs to batches, as Gymnasium's own vector envs lay them out."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from gymnasium import Space
from gymnasium.error import CustomSpaceError
from gymnasium.vector import VectorEnv
from gymnasium.vector.utils import concatenate, create_empty_array, iterate
from numpy.typing import NDArray

from coding_gym.errors import InvalidArgumentError
from coding_gym.vector.slot import Transition

Batch = tuple[Any, NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_], dict[str, Any]]


class _InfoMerger(VectorEnv[Any, Any, Any]):
    """Gymnasium merges infos in a method of its vector envs; this is one of any size."""

    def __init__(self, num_envs: int) -> None:
        self.num_envs = num_envs


def merge_infos(infos: Iterable[tuple[int, dict[str, Any]]], size: int) -> dict[str, Any]:
    """Returns infos of single envs as one of arrays of shape (size,), each with its ``_key`` mask.

    Args:
        infos: Pairs of the place in the batch and the info.
        size: Length of the batch.
    """
    merger = _InfoMerger(size)
    merged: dict[str, Any] = {}
    for place, info in infos:
        merged = merger._add_info(merged, info, place)
    return merged


def stack(space: Space[Any], observations: Sequence[Any]) -> Any:
    """Returns observations of ``space`` as one batch in memory of its own."""
    empty: Any = create_empty_array(space, n=len(observations), fn=np.zeros)
    return concatenate(space, observations, empty)


def to_batch(space: Space[Any], transitions: Sequence[Transition]) -> Batch:
    """Returns what ``step`` returns for M transitions, every array M long.

    Args:
        space: The observations' space.
        transitions: What M envs gave.
    """
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
