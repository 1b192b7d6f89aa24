"""What a forked run of tests observed, by shape: code of the project can write anything there.

Imported only on use, as pydantic takes its time.
"""

import json
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from coding_gym.synthesis.suite import ReplyError

_Hexadecimal = Annotated[str, Field(pattern=r"^[0-9a-f]+$")]


class _Strict(BaseModel):
    model_config = ConfigDict(strict=True, frozen=True)


class ObservedFailure(_Strict):
    """What a user would see of a failure; see ``inside/failures.py``."""

    kind: str
    message: str
    frames: list[tuple[str, int, str]]
    uses: list[tuple[str, str]]


class Observation(_Strict):
    """What ``inside/observer.py`` returns of one run."""

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
        data: JSON.

    Raises:
        ReplyError: It is of another shape.
    """
    try:
        return Observation.model_validate_json(json.dumps(data))
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"])) or "all of it"
        raise ReplyError(
            f"a run of the tests reported an observation of another shape: {place}: "
            f"{first['msg']}; the project's own code can write it"
        ) from error
