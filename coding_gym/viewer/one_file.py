"""Writes runs into one HTML file that needs no server and no network.

The page is the same as on the server. The file contains the scripts and styles, whose hashes the
Content-Security-Policy lists, and the JSON of all pages by address, as gzip in base64.
"""

import base64
import gzip
import hashlib
import json
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from importlib.resources import files
from itertools import permutations
from pathlib import Path
from urllib.parse import quote, urlencode

from coding_gym.errors import InvalidArgumentError
from coding_gym.viewer.pages import Json, Runs, compare, dumps
from coding_gym.whole_file import write_output

_ASSETS = files("coding_gym.viewer") / "assets"
_IMPORT = re.compile(r'^import \{[^}]*\} from "\./([\w-]+\.js)";\n', re.MULTILINE)
_EXPORT = re.compile(r"^export (?=async |function |class |const |let )", re.MULTILINE)
_STYLE = '<link rel="stylesheet" href="assets/style.css" />'
_SCRIPT = '<script type="module" src="assets/main.js"></script>'
_ICON = '<link rel="icon" href="assets/icon.svg" type="image/svg+xml" />'


def write_static_report(folders: Sequence[Path], path: Path, sources: Sequence[str] = ()) -> int:
    """Writes runs into one HTML file and returns the number of episodes in it.

    Each text is truncated to 20,000 characters.

    Args:
        folders: Run folders, or folders that contain run folders.
        path: The output file; a regular file is replaced atomically.
        sources: Task sources that may be read, in addition to the tasks of this package.

    Raises:
        InvalidArgumentError: The folders contain no run.
    """
    runs = Runs(folders, sources)
    if not runs.by_id:
        raise InvalidArgumentError(f"no run in {', '.join(map(str, folders))}; name a run folder")
    content = {
        address: base64.b64encode(gzip.compress(dumps(page).encode())).decode()
        for address, page in _pages(runs)
    }
    write_output(path, _document(json.dumps(content)))
    return sum(len(run.index.rows) for run in runs.by_id.values())


def _pages(runs: Runs) -> Iterator[tuple[str, Json]]:
    """Yields the address and the content of every page."""
    for run in runs.by_id.values():
        run.complete()
        address = f"api/runs/{quote(run.id)}"
        yield f"{address}/episodes", run.episodes()
        for task, attempt in run.index.rows:
            query = urlencode({"task": task, "attempt": attempt}, errors="replace")
            with suppress(InvalidArgumentError):  # the table marks unreadable episodes
                yield f"{address}/episode?{query}", run.episode(task, attempt)
    yield "api/runs", runs.page()
    for a, b in permutations(runs.by_id.values(), 2):
        with suppress(InvalidArgumentError):  # runs without a common task
            yield f"api/compare?{urlencode({'a': a.id, 'b': b.id})}", compare(a, b)


def _document(embedded: str) -> str:
    """Returns the HTML page with scripts, styles and data."""
    style, script = _asset("style.css"), _bundle("main.js", set())
    policy = (
        f"default-src 'none'; script-src {_csp_source(script)}; style-src {_csp_source(style)}; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )
    document = _asset("index.html")
    for old, new in (
        # Base64 and escaped addresses cannot close the script element.
        ("</body>", f'<script type="application/json" id="embedded">{embedded}</script></body>'),
        ("<head>", f'<head>\n<meta http-equiv="Content-Security-Policy" content="{policy}" />'),
        (_ICON, '<link rel="icon" href="data:," />'),
        (_STYLE, f"<style>{style}</style>"),
        (_SCRIPT, f'<script type="module">{script}</script>'),
    ):
        document = document.replace(old, new, 1)
    return document


def _bundle(name: str, included: set[str]) -> str:
    """Returns a module's source after the sources of its imports; skips ``included`` modules."""
    included.add(name)
    source = _asset(name)
    imports = [_bundle(m, included) for m in _IMPORT.findall(source) if m not in included]
    return "\n".join([*imports, _EXPORT.sub("", _IMPORT.sub("", source))])


def _asset(name: str) -> str:
    return (_ASSETS / name).read_text(encoding="utf-8")


def _csp_source(content: str) -> str:
    digest = hashlib.sha256(content.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"
