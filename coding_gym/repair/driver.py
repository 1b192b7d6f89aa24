"""Talks to the driver inside the sandbox: shell commands out, replies in; starts nothing itself."""

import base64
import io
import zipfile
from collections.abc import Generator, Mapping, Sequence
from typing import Any

from coding_gym.mutation.source import Source
from coding_gym.repair.candidates import Candidate
from coding_gym.repair.probe import wire
from coding_gym.repair.units import Unit, units
from coding_gym.tools.programs import sources

Talk = Generator[str, str, dict[str, Any] | None]
"""Yields shell commands, is sent their output, returns the reply or None where there is none."""

_PACKAGE = "template_repair_probe"
_SHARED = ("coding_gym.tools.inside.tracing", "coding_gym.synthesis.inside.forking")
_FOLDER = "${TMPDIR:-/tmp}/template-repair"
_UNPACK = (
    "import base64, io, sys, zipfile; "
    "zipfile.ZipFile(io.BytesIO(base64.b85decode(sys.stdin.read().strip()))).extractall()"
)
_RUN = (
    f'#!/bin/sh\nPYTHONPATH="{_FOLDER}${{PYTHONPATH:+:$PYTHONPATH}}" exec python -m {_PACKAGE} "$@"'
)
_MAX_REPLY_CHARS = 4 << 20  # packed
_EPOCH = (1980, 1, 1, 0, 0, 0)


def install_command() -> str:
    """Returns the shell command that writes the driver to a fresh folder under /tmp."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name, source in sources("coding_gym.repair.probe", *_SHARED).items():
            entry = zipfile.ZipInfo(f"{_PACKAGE}/{name}.py", _EPOCH)
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, source)
    text = base64.b85encode(packed.getvalue()).decode()
    folder = f"rm -rf {_FOLDER} && mkdir -p {_FOLDER} && cd {_FOLDER}"
    run = f"echo '{_RUN}' > run && chmod +x run"
    return f"{folder} && {run} && python -c '{_UNPACK}' <<'EOF' && echo ready\n{text}\nEOF"


def ask(command: str, request: Mapping[str, Any]) -> Talk:
    """Sends one request, and fetches the reply slice by slice where it is cut.

    The program under test runs beside the driver and can write replies of its own: whoever reads
    the object that comes back checks what is in it.
    """
    output = yield f"{_call(command)} <<'EOF'\n{wire.pack(request)}\nEOF"
    text = ""
    while True:
        found = wire.parse_slice(output)
        if found is None or found[0] != len(text) or not found[2] or found[1] > _MAX_REPLY_CHARS:
            return None
        text += found[2]
        if len(text) >= found[1]:
            break
        output = yield f"{_call('more')} {len(text)}"
    try:
        reply = wire.unpack(text)
    except ValueError:
        return None
    return None if not isinstance(reply, dict) or "error" in reply else reply


def trial_request(
    candidates: Sequence[Candidate],
    sources: Mapping[str, Source],
    *,
    seconds: float,
    extra: int,
    full: bool = False,
) -> dict[str, Any]:
    """Returns the request that tries candidates.

    Args:
        candidates: What to try, in order.
        sources: The files that they change.
        seconds: Time for the whole search, this request and those before it.
        extra: How many to try after the first plausible one.
        full: Whether to run every test for each, in a fresh process.
    """
    paths = sorted(sources)
    known = {path: units(source) for path, source in sources.items()}
    numbers: dict[tuple[str, Unit], int] = {}
    rows = []
    for candidate in candidates:
        edits = [[paths.index(e.path), e.start, e.end, e.replacement] for e in candidate.edits]
        rows.append([_unit_numbers(candidate, known, numbers), edits])
    unit_rows = [u.to_json() | {"path": paths.index(path)} for path, u in numbers]
    return {
        "paths": paths,
        "units": unit_rows,
        "candidates": rows,
        "seconds": seconds,
        "extra": extra,
        "full": full,
    }


def _unit_numbers(
    candidate: Candidate,
    known: Mapping[str, Sequence[Unit]],
    numbers: dict[tuple[str, Unit], int],
) -> list[int]:
    """Returns the units that hold a candidate's edits; none where an edit lies outside of any."""
    found = set()
    for edit in candidate.edits:
        unit = next((unit for unit in known[edit.path] if unit.holds(edit)), None)
        if unit is None:
            return []
        found.add(numbers.setdefault((edit.path, unit), len(numbers)))
    return sorted(found)


def _call(command: str) -> str:
    return f"{_FOLDER}/run {command}"
