"""Where one name is defined, and where it is used."""

# ruff: noqa: TID252, PTH109 - in the sandbox this package has another name

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Any

from .quick_tags import quick_tags
from .tags import tags
from .tree import Tree, printable

if TYPE_CHECKING:
    from collections.abc import Callable

_MAX_SIMILAR = 5


def answer(request: dict[str, Any], reply: Callable[[Any], None]) -> None:
    """Replies with the places of a name.

    Args:
        request: ``name``, of which only what is behind the last dot must be found in a use;
            ``uses``, whether uses are wanted and not definitions; ``max_places``.
        reply: Takes ``places``, each with ``path``, ``line``, ``kind`` and ``text``; whether there
            are ``more``; ``similar``, names that hold this one, where there is no place.
    """
    name = request["name"].replace("::", ".").strip(".")
    last = name.rpartition(".")[2]
    data = last.encode("utf-8", "replace")
    # Parsing takes time: what cannot define the name is left alone.
    binds = re.compile(rb"(?:def|class)\s+%b|%b[^\n]{0,500}[=:]" % ((re.escape(data),) * 2))
    places: list[dict[str, Any]] = []
    for file in Tree(os.getcwd()).files(data):
        if len(places) > request["max_places"]:
            break
        if file.language == "python" and not request["uses"] and not binds.search(file.data):
            continue
        found = tags(file)
        if request["uses"]:
            hits = sorted({(line, "use") for line, used in found.uses if used.lstrip(".") == last})
        else:
            hits = [(line, kind) for line, full, kind in found.definitions if _fits(full, name)]
        lines = file.lines() if hits else []
        for line, kind in hits:
            text = printable(lines[line - 1].strip()) if line <= len(lines) else ""
            place = {"path": printable(file.path), "line": line, "kind": kind, "text": text}
            places.append(place)
    more = len(places) > request["max_places"]
    similar = [] if places else _similar(last)
    reply({"places": places[: request["max_places"]], "more": more, "similar": similar})


def _fits(full: str, name: str) -> bool:
    return full == name or full.endswith("." + name)


def _similar(name: str) -> list[str]:
    wanted = name.lower().strip("_")
    names: set[str] = set()
    for file in Tree(os.getcwd()).files() if wanted else ():
        found = quick_tags(file.data) if file.language == "python" else tags(file)
        names.update(full.rpartition(".")[2] for _, full, _ in found.definitions)
    holding = (name for name in names if wanted in name.lower())
    return [printable(n) for n in sorted(holding, key=lambda n: (len(n), n))[:_MAX_SIMILAR]]
