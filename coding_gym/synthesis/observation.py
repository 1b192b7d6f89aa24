"""Validates the observation of a forked run, because code of the project can forge it.

This module is imported on first use, because importing pydantic is slow.
"""

import json
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from coding_gym.synthesis.suite import ReplyError

_Hexadecimal = Annotated[str, Field(pattern=r"^[0-9a-f]+$")]


class _Strict(BaseModel):
    model_config = ConfigDict(strict=True, frozen=True)


class ObservedFailure(_Strict):
    """The visible part of a failure; see ``inside/failures.py``."""

    kind: str
    message: str
    frames: list[tuple[str, int, str]]
    uses: list[tuple[str, str]]


class Observation(_Strict):
    """The result of ``inside/observer.py`` for one run."""

    tests: list[tuple[str, str, int]]
    failures: dict[str, ObservedFailure]
    random: list[str]
    lines: dict[str, dict[int, _Hexadecimal]]
    imported: dict[str, list[int]]
    spawning: list[str]
    modules: list[str]


def read_observation(data: object) -> Observation:
    """Returns an observation.

    Args:
        data: A JSON value.

    Raises:
        ReplyError: The value has another format.
    """
    try:
        return Observation.model_validate_json(json.dumps(data))
    except ValidationError as error:
        first = error.errors()[0]
        path = ".".join(map(str, first["loc"])) or "the whole value"
        raise ReplyError(
            f"a run of the tests reported a malformed observation: {path}: {first['msg']}; code of "
            "the project can cause this"
        ) from error
