"""The values of an env as JSON, and back: arrays, grades, actions and spaces.

JSON's own values stay as they are; tuples become lists. Other values are objects with one key that
begins with ``$``.
"""

import base64
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from coding_gym.action import Completion, Stop
from coding_gym.envs.spaces import ActionText, AnyText
from coding_gym.errors import InvalidArgumentError
from coding_gym.grade import Grade

Json = Any

_MAX_ACTION = 1 << 17  # numbers


def encode(value: Any) -> Json:
    """Returns an observation, an info or a part of them as JSON.

    Raises:
        InvalidArgumentError: JSON has no form for a value in it.
    """
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, np.ndarray):
        return {"$array": _encoded_array(value)}
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, Grade):
        return {"$grade": value.to_json()}
    if isinstance(value, Mapping):
        return {str(key): encode(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [encode(item) for item in value]
    raise InvalidArgumentError(f"a value of {type(value).__name__} cannot be sent: {value!r:.80}")


def decode(value: Json) -> Any:
    """Returns what `encode` was given, with lists for tuples."""
    if isinstance(value, list):
        return [decode(item) for item in value]
    if not isinstance(value, dict):
        return value
    if value.keys() == {"$array"}:
        return _decoded_array(value["$array"])
    if value.keys() == {"$grade"}:
        return Grade.from_json(value["$grade"])
    return {key: decode(item) for key, item in value.items()}


def _encoded_array(array: NDArray[Any]) -> Json:
    """Writes bytes in base64; what an array repeats at its end, as padding does, is left out."""
    flat = np.ascontiguousarray(array).reshape(-1)
    others = np.flatnonzero(flat != flat[-1:])
    kept = int(others[-1]) + 2 if others.size else 1
    data = flat[:kept].astype(flat.dtype.newbyteorder("<"), copy=False).tobytes()
    return {
        "dtype": flat.dtype.name,
        "shape": array.shape,
        "data": base64.b64encode(data).decode("ascii"),
    }


def _decoded_array(found: Json) -> NDArray[Any]:
    dtype, shape = np.dtype(found["dtype"]), tuple(found["shape"])
    if dtype.kind not in "biuf":
        raise ValueError(f"an array of numbers has no dtype {dtype}")
    kept = np.frombuffer(base64.b64decode(found["data"]), dtype.newbyteorder("<")).astype(dtype)
    size = int(np.prod(shape))
    return np.concatenate([kept, np.repeat(kept[-1:], size - len(kept))]).reshape(shape)


def encode_action(action: Any) -> Json:
    """Returns an action as JSON: text, text with its tokens, a stop, a number, or an array."""
    if isinstance(action, Completion):
        logprobs = action.logprobs
        return {
            "text": str(action),
            "token_ids": list(action.token_ids),
            "logprobs": None if logprobs is None else list(logprobs),
        }
    if isinstance(action, Stop):
        return {"stop": str(action)}
    return encode(action)


def decode_action(value: Json) -> Any:
    """Returns the action that `encode_action` was given.

    Raises:
        InvalidArgumentError: It is none.
    """
    if not isinstance(value, dict):
        return value
    try:
        if value.keys() == {"$array"}:
            shape = value["$array"]["shape"]
            if not all(type(size) is int and 0 <= size <= _MAX_ACTION for size in shape):
                raise ValueError(f"a shape is a list of integers up to {_MAX_ACTION}")
            if math.prod(shape) > _MAX_ACTION:
                raise ValueError(f"an array may have {_MAX_ACTION} numbers")
            return _decoded_array(value["$array"])
        if value.keys() == {"stop"}:
            return Stop(value["stop"])
        if value.keys() <= {"text", "token_ids", "logprobs"}:
            return Completion(value["text"], value["token_ids"], value.get("logprobs"))
    except (KeyError, IndexError, TypeError, ValueError, OverflowError) as problem:
        raise InvalidArgumentError(f"action {value!r:.80} cannot be read: {problem}") from None
    raise InvalidArgumentError(
        "an action is a text, a number, an array, {'stop': reason} or {'text', 'token_ids', "
        f"'logprobs'}}, got the keys {', '.join(map(repr, value))}"
    )


def encode_space(space: spaces.Space[Any]) -> Json:
    """Returns a space as JSON.

    Raises:
        InvalidArgumentError: It is of a kind that cannot be sent.
    """
    kind = type(space).__name__
    match space:
        case spaces.Dict():
            parts = {name: encode_space(part) for name, part in space.spaces.items()}
            return {"kind": kind, "parts": parts}
        case spaces.Box():
            bounds = {"low": encode(space.low), "high": encode(space.high)}
            return {"kind": kind, **bounds, "shape": space.shape, "dtype": str(space.dtype)}
        case spaces.Discrete():
            return {"kind": kind, "n": int(space.n), "start": int(space.start)}
        case spaces.MultiDiscrete():
            return {"kind": kind, "nvec": space.nvec.tolist()}
        case spaces.MultiBinary():
            return {"kind": kind, "n": encode(space.n)}
        case ActionText():
            return {"kind": kind, "toolset": space.toolset, "tool_format": space.tool_format}
        case AnyText():
            return {"kind": kind, "max_length": space.max_length}
    raise InvalidArgumentError(f"a space of kind {kind} cannot be sent")


def decode_space(found: Json) -> spaces.Space[Any]:
    """Returns the space that `encode_space` was given."""
    kinds: Mapping[str, Any] = {
        "Dict": lambda parts: spaces.Dict({name: decode_space(p) for name, p in parts.items()}),
        "Box": lambda low, high, shape, dtype: spaces.Box(
            decode(low), decode(high), tuple(shape), np.dtype(dtype).type
        ),
        "Discrete": lambda n, start: spaces.Discrete(n, start=start),
        "MultiDiscrete": spaces.MultiDiscrete,
        "MultiBinary": spaces.MultiBinary,
        "ActionText": ActionText,
        "AnyText": AnyText,
    }
    arguments = {name: value for name, value in found.items() if name != "kind"}
    space: spaces.Space[Any] = kinds[found["kind"]](**arguments)
    return space
