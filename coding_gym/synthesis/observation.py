"""The observation of a run as a model: code of the project can forge it, so it is validated."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

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
