"""Snapshots of an env with its wrappers, ways back to them, and new envs that go on from there."""

from copy import deepcopy
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

import gymnasium as gym
from gymnasium.utils import RecordConstructorArgs

from coding_gym.envs.chain import layers
from coding_gym.envs.randomness import Randomness
from coding_gym.envs.snapshot import OPTION, EnvSnapshot, checked
from coding_gym.errors import InvalidArgumentError

if TYPE_CHECKING:  # the package is imported without its sandboxes
    from coding_gym.envs.coding_repair import CodingRepairEnv

ObsType = TypeVar("ObsType")
ActType = TypeVar("ActType")

# Wrappers of Gymnasium that remember nothing between steps, or nothing that matters.
_STATELESS = {
    *("ArrayConversion", "JaxToNumpy", "JaxToTorch", "NumpyToTorch"),
    *("ClipAction", "DiscretizeAction", "RepeatAction", "RescaleAction", "TransformAction"),
    *("ClipReward", "TransformReward"),
    *("DiscretizeObservation", "DtypeObservation", "FilterObservation", "FlattenObservation"),
    *("RescaleObservation", "ReshapeObservation", "TransformObservation"),
    *("OrderEnforcing", "PassiveEnvChecker"),
}


def snapshot(env: gym.Env[Any, Any]) -> EnvSnapshot:
    """Returns this moment of a ``CodingRepair-v0`` env with all its wrappers, between two steps.

    Args:
        env: The outermost wrapper, or the env.

    Raises:
        EpisodeError: No episode is running.
        InvalidArgumentError: It is another env, or a wrapper is not known to be safe.
        SandboxError: The sandbox died.
    """
    core = _core(env)
    states: dict[str, Any] = {}
    for layer in layers(env):
        if isinstance(layer, gym.Wrapper) and _remembers(layer):
            name = type(layer).__name__
            if name in states:
                raise InvalidArgumentError(f"a snapshot holds the state of one {name}, got two")
            remembering: Any = layer
            states[name] = remembering.snapshot_state()
    return replace(core.snapshot(), wrappers=states, randomness=Randomness.of(env))


def restore(env: gym.Env[ObsType, ActType], moment: EnvSnapshot) -> tuple[ObsType, dict[str, Any]]:
    """Brings an env and its wrappers to a snapshot; whatever episode was running is dropped.

    From there on the same actions give what they gave before, and so do the next episodes and
    samples of the spaces.

    Args:
        env: The env that the snapshot was taken of, or one that is made and wrapped alike.
        moment: The snapshot.

    Returns:
        The observation and info of that moment.

    Raises:
        InvalidArgumentError: The env has other arguments, tasks or wrappers; nothing has changed.
        SandboxUnavailableError: This machine cannot run the sandbox at all.
    """
    core = _core(env)
    core.check_restorable(checked(moment))
    observation, info = env.reset(options={OPTION: moment})
    core.resume(moment)
    moment.randomness.put_back(env)
    return observation, info


def fork(env: gym.Env[ObsType, ActType]) -> gym.Env[ObsType, ActType]:
    """Returns a new env, wrapped in the same way, that goes on from here by itself.

    Its random generators are copies too, so that both sample the same: seed the action space of
    one where they shall not.

    Args:
        env: The outermost wrapper, or the env.

    Raises:
        EpisodeError: No episode is running.
        InvalidArgumentError: A wrapper is not known to be safe, or does not record its arguments.
        SandboxError: The sandbox died.
    """
    _core(env)
    arguments = {id(layer): _arguments(layer) for layer in layers(env)}
    moment = snapshot(env)
    *wrappers, core = layers(env)
    twin: Any = core.twin()  # type: ignore[attr-defined] # _core has looked
    try:
        for layer in reversed(wrappers):
            twin = type(layer)(env=twin, **arguments[id(layer)])
        restore(twin, moment)
    except BaseException:
        twin.close()
        raise
    forked: gym.Env[ObsType, ActType] = twin
    return forked


def _core(env: gym.Env[Any, Any]) -> "CodingRepairEnv":
    from coding_gym.envs.coding_repair import CodingRepairEnv  # brings in the sandboxes

    core = getattr(env, "unwrapped", env)
    if not isinstance(core, CodingRepairEnv):
        raise InvalidArgumentError(
            f"snapshots are of CodingRepair-v0, got {type(core).__name__}; of a vector env take "
            "those of its envs"
        )
    return core


def _remembers(wrapper: gym.Wrapper[Any, Any, Any, Any]) -> bool:
    """Whether a wrapper has a state to keep; raises where nobody knows."""
    kind = type(wrapper)
    if hasattr(kind, "snapshot_state"):
        return True
    is_known = kind.__module__.startswith("gymnasium.") and kind.__name__ in _STATELESS
    if not is_known and not kind.__module__.startswith("coding_gym.wrappers."):
        raise InvalidArgumentError(
            f"{kind.__name__} may remember what a snapshot would miss; give it a method "
            "snapshot_state (see docs/snapshots.md), or take the snapshot of the env inside it"
        )
    return False


def _arguments(layer: gym.Env[Any, Any]) -> dict[str, Any]:
    """Returns the arguments that make a wrapper like this one."""
    if not isinstance(layer, gym.Wrapper):
        return {}
    if not isinstance(layer, RecordConstructorArgs):
        raise InvalidArgumentError(
            f"{type(layer).__name__} does not record its arguments, so that no second one can be "
            "made; let it inherit from gymnasium.utils.RecordConstructorArgs"
        )
    return {k: deepcopy(v) for k, v in layer._saved_kwargs.items() if k != "env"}
