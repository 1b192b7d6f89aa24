"""The random generators of an env, its wrappers and their spaces, to go on from again."""

from collections import Counter
from collections.abc import Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, Self

import gymnasium as gym
import numpy as np
from gymnasium import Space

from coding_gym.envs.chain import layers


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Randomness:
    """Copies of generators at one moment.

    Attributes:
        generator: The env's.
        seed: What it was last seeded with.
        spaces: Those of the spaces that each layer of the chain has of its own, by its name.
    """

    generator: np.random.Generator
    seed: int | None
    spaces: Mapping[str, tuple[np.random.Generator, ...]]

    @classmethod
    def of(cls, env: gym.Env[Any, Any]) -> Self:
        """Returns copies of all generators of a chain; what was never seeded is seeded now."""
        core: Any = env.unwrapped
        return cls(
            generator=deepcopy(core.np_random),
            seed=core.np_random_seed,
            spaces={
                name: tuple(deepcopy(space.np_random) for space in own)
                for name, own in _own_spaces(env).items()
            },
        )

    def put_back(self, env: gym.Env[Any, Any]) -> None:
        """Gives a chain these generators; layers that the other chain had not keep their own."""
        core: Any = env.unwrapped
        core._np_random, core._np_random_seed = deepcopy(self.generator), self.seed
        for name, own in _own_spaces(env).items():
            kept = self.spaces.get(name, ())
            if len(kept) == len(own):
                for space, generator in zip(own, kept, strict=True):
                    space._np_random = deepcopy(generator)


def _own_spaces(env: gym.Env[Any, Any]) -> dict[str, list[Space[Any]]]:
    """Returns the spaces of each layer that those inside it do not have, and their parts."""
    found: dict[str, list[Space[Any]]] = {}
    known: set[int] = set()
    times: Counter[str] = Counter()
    for layer in reversed(list(layers(env))):
        name = type(layer).__name__
        times[name] += 1
        parts = [*_parts(layer.action_space), *_parts(layer.observation_space)]
        found[f"{name} {times[name]}"] = [space for space in parts if id(space) not in known]
        known.update(map(id, parts))
    return found


def _parts(space: Space[Any]) -> Iterator[Space[Any]]:
    """Yields a space and the spaces it is made of."""
    yield space
    for value in vars(space).values():
        inner = tuple(value.values()) if isinstance(value, Mapping) else value
        for part in inner if isinstance(inner, tuple | list) else (inner,):
            if isinstance(part, Space):
                yield from _parts(part)
