"""Wrappers as they are named in arguments: ``{"name": "TokenBudget", "kwargs": {...}}``."""

import importlib
import inspect
from collections.abc import Mapping
from copy import deepcopy
from typing import Any

import gymnasium as gym
from gymnasium.envs.registration import WrapperSpec

from coding_gym.arguments import check_arguments, nearest, unknown_name
from coding_gym.errors import InvalidArgumentError, UnknownNameError

ROOM = "coding_gym.wrappers"
_FORM = '{"name": ..., "kwargs": {...}}'


def wrapper_specs(wrappers: Any) -> tuple[WrapperSpec, ...]:
    """Returns Gymnasium's specs of a list of entries, innermost first.

    Args:
        wrappers: ``{"name": ..., "kwargs": {...}}`` for each wrapper; ``kwargs`` may be missing.

    Raises:
        InvalidArgumentError, UnknownNameError: They cannot be used; the message says what to write.
    """
    if not isinstance(wrappers, list | tuple):
        raise InvalidArgumentError(f"wrappers must be a list of {_FORM}, got {wrappers!r}")
    return tuple(_wrapper_spec(entry) for entry in wrappers)


def _wrapper_spec(entry: Any) -> WrapperSpec:
    name, kwargs = _parts(entry)
    path, _, last = name.rpartition(":")
    path = path or ROOM
    parameters = list(inspect.signature(_find(path, last)).parameters.values())[1:]  # not the env
    if not any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters):
        check_arguments(last, kwargs, [parameter.name for parameter in parameters])
    for parameter in parameters:
        by_name = parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY)
        if by_name and parameter.default is parameter.empty and parameter.name not in kwargs:
            raise InvalidArgumentError(
                f"{last} needs {parameter.name}; write "
                f'{{"name": "{name}", "kwargs": {{"{parameter.name}": ...}}}}'
            )
    return WrapperSpec(name=last, entry_point=f"{path}:{last}", kwargs=deepcopy(dict(kwargs)))


def _parts(entry: Any) -> tuple[str, Mapping[str, Any]]:
    """Returns an entry's name and kwargs."""
    if isinstance(entry, str | type):
        raise InvalidArgumentError(
            f'a wrapper is given as {_FORM}; write {{"name": "{_name_of(entry)}"}}, got {entry!r}'
        )
    if not isinstance(entry, Mapping) or "name" not in entry:
        raise InvalidArgumentError(f"a wrapper is given as {_FORM}, got {entry!r}")
    stray = ", ".join(str(key) for key in entry if key not in ("name", "kwargs"))
    if stray:
        raise InvalidArgumentError(
            f"a wrapper's keys are 'name' and 'kwargs'; put {stray} under 'kwargs', got {entry!r}"
        )
    name, kwargs = entry["name"], entry.get("kwargs", {})
    if not isinstance(name, str) or not isinstance(kwargs, Mapping):
        raise InvalidArgumentError(f"a wrapper's name is a text, its kwargs a dict, got {entry!r}")
    return name, kwargs


def _name_of(entry: str | type) -> str:
    if isinstance(entry, str):
        return entry
    if entry.__module__.startswith(ROOM):
        return entry.__name__
    return f"{entry.__module__}:{entry.__qualname__}"


def _find(path: str, name: str) -> type[gym.Wrapper[Any, Any, Any, Any]]:
    """Returns the wrapper class; Gymnasium's own errors would not say what there is."""
    try:
        module = importlib.import_module(path)
        if path == ROOM and name not in module.__all__:
            raise unknown_name("wrapper", name, module.__all__)
        found = getattr(module, name, None)
    except ImportError as error:
        raise InvalidArgumentError(
            f"the wrapper {path}:{name} cannot be imported: {error}; a wrapper is named by its "
            f"class in {ROOM}, or as 'module:Class'"
        ) from error
    if isinstance(found, type) and issubclass(found, gym.Wrapper):
        return found
    if found is not None:
        raise InvalidArgumentError(f"{path}:{name} is not a class of gymnasium.Wrapper")
    near = nearest(name, [name for name, kind in vars(module).items() if isinstance(kind, type)])
    meant = f"; did you mean {near!r}?" if near else ""
    raise UnknownNameError(f"{path} has no class {name!r}{meant}")
