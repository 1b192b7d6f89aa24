"""Whether a file's text is valid Python or JSON, as the sandbox's own Python sees it."""

from __future__ import annotations

import json
import warnings
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable


def check(request: dict[str, Any], reply: Callable[[Any], None]) -> None:
    """Replies with what is wrong with texts.

    Args:
        request: ``texts``, with lone surrogates for bytes that are no text; ``language``,
            ``python`` or ``json``.
        reply: Takes ``errors``, for each text its message, "" where there is none, and line or 0.
    """
    find = _python_error if request["language"] == "python" else _json_error
    reply({"errors": [find(text) for text in request["texts"]]})


def _python_error(text: str) -> tuple[str, int]:
    try:
        data = text.encode("utf-8", "surrogateescape")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compile(data, "file", "exec", dont_inherit=True)
    except SyntaxError as error:
        return f"{type(error).__name__}: {error.msg}"[:300], error.lineno or 0
    except (ValueError, RecursionError, MemoryError) as error:
        return f"{type(error).__name__}: {error}"[:300], 0
    return "", 0


def _json_error(text: str) -> tuple[str, int]:
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        return f"JSONDecodeError: {error.msg}"[:300], error.lineno
    except (ValueError, RecursionError) as error:
        return f"{type(error).__name__}: {error}"[:300], 0
    return "", 0
