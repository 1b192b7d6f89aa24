"""The single envs of a vector env, made as ``gym.make`` makes them, each with its wrappers."""

import importlib
import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import deepcopy
from typing import Any, cast

import gymnasium as gym

from coding_gym.arguments import check_arguments, nearest, unknown_name
from coding_gym.envs import ENV_ID, CodingRepairEnv
from coding_gym.envs.chain import check_ends_are_graded
from coding_gym.errors import InvalidArgumentError, UnknownNameError

Env = gym.Env[Any, Any]
Wrap = Callable[[Env], Env]
WrapperEntry = Mapping[str, Any] | Wrap
"""A wrapper: ``{"name": "TokenBudget", "kwargs": {...}}``, or a callable from env to env."""

_ELSEWHERE = {"n_envs": "num_envs"}
_OURS = "coding_gym.wrappers"
_FORM = '{"name": ..., "kwargs": {...}}'


def make_envs(
    num_envs: int,
    wrappers: Sequence[WrapperEntry],
    env_kwargs: Mapping[str, Any],
    group_size: int = 1,
) -> list[Env]:
    """Returns envs, each wrapped by wrappers of its own; their samplers learn from all of them.

    Args:
        num_envs: How many.
        wrappers: The innermost first. An entry is ``{"name": ..., "kwargs": {...}}``, where
            ``kwargs`` may be missing, or a callable that takes an env and returns one.
        env_kwargs: Arguments of `CodingRepairEnv`.
        group_size: How many of them are to have the same tasks.

    Raises:
        InvalidArgumentError, UnknownNameError: An argument or an entry of ``wrappers`` cannot be
            used.
    """
    check_env_arguments(env_kwargs)
    if not isinstance(wrappers, list | tuple):
        raise InvalidArgumentError(
            f"wrappers must be a list of {_FORM} or of callables, got {wrappers!r}"
        )
    wraps = [_wrap(entry) for entry in wrappers]
    envs: list[Env] = []
    try:
        for _ in range(num_envs):
            spec = deepcopy(gym.spec(ENV_ID))
            spec.kwargs = dict(env_kwargs)
            # The checker would look at the first step of each env; it changes nothing.
            envs.append(gym.make(spec, disable_env_checker=True))
            for wrap in wraps:
                envs[-1] = _wrapped(envs[-1], wrap)
            check_ends_are_graded(envs[-1])
            _join(envs[0], envs[-1], group_size)
    except BaseException:
        for env in envs:
            env.close()
        raise
    return envs


def _wrapped(env: Env, wrap: Wrap) -> Env:
    wrapped: object = wrap(env)
    if not isinstance(wrapped, gym.Env):
        raise InvalidArgumentError(f"a wrapper must return an env, {wrap!r} returned {wrapped!r}")
    return wrapped


def _join(first: Env, other: Env, group_size: int) -> None:
    """Lets two envs' samplers learn from each other."""
    one, two = cast("CodingRepairEnv", first.unwrapped), cast("CodingRepairEnv", other.unwrapped)
    if group_size > 1 and two.sampler.follows_results:
        raise InvalidArgumentError(
            "a sampler that follows results may give the envs of a group different tasks; use "
            "another one with group_size, or draw tasks by get_sampler and name them in reset"
        )
    if one is not two:
        two.sampler.share(one.sampler)


def check_env_arguments(arguments: Iterable[str], more: Iterable[str] = ()) -> None:
    """Refuses names of keyword arguments that neither `CodingRepairEnv` nor ``more`` has."""
    if "max_episode_steps" in arguments:
        raise InvalidArgumentError(
            "max_episode_steps is counted by a wrapper outside; use max_turns"
        )
    known = [*more, *inspect.signature(CodingRepairEnv).parameters]
    check_arguments(ENV_ID, arguments, known, elsewhere=_ELSEWHERE if more else None)


def _wrap(entry: Any) -> Wrap:
    """Returns what an entry stands for, as a function of an env."""
    if callable(entry):
        return cast("Wrap", entry)
    name, kwargs = _parts(entry)
    path, _, last = name.rpartition(":")
    kind = _find(path or _OURS, last)
    parameters = list(inspect.signature(kind).parameters.values())[1:]  # not the env
    if not any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters):
        check_arguments(last, kwargs, [parameter.name for parameter in parameters])
    for parameter in parameters:
        by_name = parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY)
        if by_name and parameter.default is parameter.empty and parameter.name not in kwargs:
            raise InvalidArgumentError(
                f"{last} needs {parameter.name}; write "
                f'{{"name": "{name}", "kwargs": {{"{parameter.name}": ...}}}}'
            )
    return lambda env: kind(env, **deepcopy(dict(kwargs)))


def _parts(entry: Any) -> tuple[str, Mapping[str, Any]]:
    """Returns an entry's name and kwargs."""
    if isinstance(entry, str):
        raise InvalidArgumentError(
            f'a wrapper is given as {_FORM}; write {{"name": "{entry}"}}, got {entry!r}'
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


def _find(path: str, name: str) -> type[gym.Wrapper[Any, Any, Any, Any]]:
    """Returns the wrapper class; Gymnasium's own errors would not say what there is."""
    try:
        module = importlib.import_module(path)
        if path == _OURS and name not in module.__all__:
            raise unknown_name("wrapper", name, module.__all__)
        found = getattr(module, name, None)
    except ImportError as error:
        raise InvalidArgumentError(
            f"the wrapper {path}:{name} cannot be imported: {error}; a wrapper is named by its "
            f"class in {_OURS}, or as 'module:Class'"
        ) from error
    if isinstance(found, type) and issubclass(found, gym.Wrapper):
        return found
    if found is not None:
        raise InvalidArgumentError(f"{path}:{name} is not a class of gymnasium.Wrapper")
    near = nearest(name, [name for name, kind in vars(module).items() if isinstance(kind, type)])
    hint = f"; did you mean {near!r}?" if near else ""
    raise UnknownNameError(f"{path} has no class {name!r}{hint}")
