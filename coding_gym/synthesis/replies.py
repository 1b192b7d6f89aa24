"""What the program in the sandbox replies, by shape: code of the project can write anything there.

Imported only on use, as pydantic takes its time.
"""

from typing import Annotated, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from coding_gym.synthesis.suite import ReplyError

Model = TypeVar("Model", bound=BaseModel)
_Hexadecimal = Annotated[str, Field(pattern=r"^[0-9a-f]+$")]


class _Reply(BaseModel):
    model_config = ConfigDict(strict=True, frozen=True)


class SeenFailure(_Reply):
    """What a user would see of a failure; see ``inside/seen.py``."""

    kind: str
    message: str
    frames: list[tuple[str, int, str]]
    uses: list[tuple[str, str]]


class Refusal(_Reply):
    """The part of every reply that says why there is no more."""

    error: str


class CoverageReply(_Reply):
    """What ``inside/line_coverage.py`` returns."""

    tests: list[tuple[str, str, int, bool]]
    failure: SeenFailure | None
    lines: dict[str, dict[int, _Hexadecimal]]
    imported: dict[str, list[int]]
    spawning: list[int]
    cpu_s: Annotated[float, Field(ge=0, allow_inf_nan=False)]
    preload: list[str]
    shares: bool
    copies: list[str]


class TraceReply(_Reply):
    """What ``inside/line_coverage.py`` returns of one traced run."""

    outcomes: dict[str, Literal["passed", "failed", "skipped"]]
    failures: dict[str, SeenFailure]
    lines: dict[str, dict[int, _Hexadecimal]]
    imported: dict[str, list[int]]
    preload: list[str]
    shares: bool


class AttemptReply(_Reply):
    """What ``inside/attempts.py`` returns of one attempt: of some no more than the error."""

    error: str
    is_stable: bool = False
    failed: tuple[str, ...] = ()
    failures: dict[str, SeenFailure] = {}
    outcomes: dict[str, str] = {}


class AttemptReplies(_Reply):
    """What ``inside/attempts.py`` returns."""

    results: list[AttemptReply]
    cpu_s: Annotated[float, Field(ge=0, allow_inf_nan=False)]


def read_reply(model: type[Model], data: bytes) -> Model:
    """Returns a reply of one kind.

    Raises:
        ReplyError: It is of another shape.
    """
    try:
        return model.model_validate_json(data)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"])) or "all of it"
        raise ReplyError(
            f"the program that runs the tests gave a reply of another shape: {place}: "
            f"{first['msg']}; the project's own code may have written it"
        ) from error
