"""Where names are defined and used, and a map of the definitions that are used most.

Python files are parsed. Files of other languages, and Python that does not parse, are listed by
name, and names are looked up in them as words. A policy may have put anything into the workspace,
so all reading has bounds.
"""

# ruff: noqa: PTH109, PTH113, PTH114, PTH118 - many paths: plain ones take a third of the time

from __future__ import annotations

import ast
import builtins
import math
import os
import re
import stat
import warnings
from collections import Counter
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

_PYTHON = (".py", ".pyi")
_SUFFIXES = (
    *_PYTHON,
    *(".js", ".jsx", ".mjs", ".cjs", ".ts", ".tsx", ".mts", ".cts", ".java", ".kt", ".kts"),
    *(".scala", ".cs", ".swift", ".go", ".rs", ".c", ".h", ".cc", ".cpp", ".cxx", ".hh", ".hpp"),
    *(".hxx", ".rb", ".php"),
)
_MAX_FILE_BYTES = 512 << 10
_MAX_READ_BYTES = 24 << 20
_MAX_MAPPED_BYTES = 4 << 20  # of the files that a map parses
_MAX_FILES = 5000
_MAX_ENTRIES = 100_000
_MAX_DEPTH = 40
_SKIPPED = {"node_modules", "__pycache__", "venv", "site-packages", "target", "dist", "build"}
_LINE_CHARS = 160
_SIGNATURE_CHARS = 100
_MAX_LOCATIONS, _MAX_SIMILAR = 30, 5
_LESS, _MORE, _SHORT = 0.1, 3.0, 2
_WORDS = re.compile(r"[a-z0-9](_[A-Za-z]|[A-Z])")
# What every program calls on texts and lists says nothing of what it defines itself.
_BUILTINS = frozenset(dir(builtins)).union(*map(dir, (str, bytes, list, dict, set)))
_TEST_FILE = re.compile(r"(^|/)(tests?/|testing/|test_[^/]*$|[^/]*_test\.py$|conftest\.py$)")
_INNER = ("attribute", "local")
_DEFINED = re.compile(rb"^[ \t]*(?:async[ \t]+)?(?:def|class)[ \t]+([A-Za-z_]\w*)", re.MULTILINE)
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def repo_map(request: dict[str, Any], reply: Callable[[Any], None]) -> None:
    """Replies with the definitions that are used most, as many as fit.

    Args:
        request: ``paths``, of which only what is below is displayed, none for all; ``max_chars``.
        reply: Takes ``text`` and ``ok``.
    """
    wanted = [_inside(path) for path in request["paths"]]
    files, num_left_out = source_files()
    parsed: dict[str, Tags] = {}
    bytes_left = _MAX_MAPPED_BYTES
    for path, data in sorted(files, key=lambda file: (is_test(file[0]), file[0])):
        is_parsed = path.endswith(_PYTHON) and len(data) <= bytes_left
        tags = python_tags(data) if is_parsed else None
        if tags is not None:
            bytes_left -= len(data)
            parsed[path] = tags
    order = [d for d in _ranked(parsed) if _is_below(d.path, wanted)]
    text, num_drawn = _drawn(order, request["max_chars"])
    names = [path for path, _ in files if path not in parsed and _is_below(path, wanted)]
    text += _listed(names, request["max_chars"] - len(text))
    where = f"{sum(_is_below(path, wanted) for path in parsed)} source files"
    where += " below the paths given" if wanted else ""
    summary = f"No definitions were found in {where}."
    if order:
        summary = f"({num_drawn} of {len(order)} definitions in {where}, the most used ones."
    if num_left_out:
        what = "file was" if num_left_out == 1 else "files were"
        summary += f" {num_left_out} {what} not read: too large, no text, or too many."
    reply({"ok": True, "text": text + summary + ")" * bool(order)})


def look_up(request: dict[str, Any], reply: Callable[[Any], None]) -> None:
    """Replies with the locations of a name.

    Args:
        request: ``name``, of which only what is behind the last dot must be found in a use;
            ``quoted``, how the name is written in a refusal; ``uses``, whether uses are wanted and
            not definitions.
        reply: Takes ``text`` and ``ok``.
    """
    name, uses = request["name"].replace("::", ".").strip("."), request["uses"]
    last = name.rpartition(".")[2]
    locations: list[str] = []
    mentions: list[str] = []
    for path, data in source_files(last.encode("utf-8", "replace"))[0]:
        if len(locations) > _MAX_LOCATIONS:
            break
        hits = _hits(path, data, name, uses=uses)
        found = locations if uses or hits is not None else mentions
        lines = [] if hits == [] else _lines(data)
        if hits is None:
            word = re.compile(rf"(?<!\w){re.escape(last)}(?!\w)")
            kind = "" if uses else " (mention)"
            hits = [(n, kind) for n, line in enumerate(lines, 1) if word.search(line)]
        for number, kind in hits[: _MAX_LOCATIONS + 1]:
            text = printable("".join(lines[number - 1 : number]).strip())
            found.append(f"{printable(path)}:{number}{kind}: {text}")
    found = locations or mentions
    text = "\n".join(found[:_MAX_LOCATIONS])
    if not found:
        what = "is used nowhere" if uses else "is defined nowhere"
        text = f"{request['quoted']} {what} in the source files that can be read{_similar(last)}"
    elif len(found) > _MAX_LOCATIONS:
        text += f"\n(only the first {_MAX_LOCATIONS} are shown)"
    reply({"ok": bool(found), "text": text})


def _hits(path: str, data: bytes, name: str, *, uses: bool) -> list[tuple[int, str]] | None:
    """Returns lines of a Python file that define or use a name; None where it is not parsed."""
    if not path.endswith(_PYTHON):
        return None
    last = name.rpartition(".")[2]
    word = re.escape(last.encode("utf-8", "replace"))
    if not uses and not re.search(rb"(?:def|class)\s+%b|%b[^\n]{0,500}[=:]" % (word, word), data):
        return []  # parsing takes time
    tags = python_tags(data)
    if tags is None:
        return None
    if uses:
        return [(n, "") for n in sorted({n for n, used in tags.uses if used.lstrip(".") == last})]
    found = tags.definitions
    return [(n, f" ({kind})") for n, full, kind in found if f".{full}".endswith(f".{name}")]


def _similar(name: str) -> str:
    wanted = name.lower().strip("_")
    names: set[str] = set()
    for path, data in source_files()[0] if wanted else ():
        if path.endswith(_PYTHON):
            names.update(found.decode() for found in _DEFINED.findall(data))
    holding = sorted((n for n in names if wanted in n.lower()), key=lambda n: (len(n), n))
    return f"; there are {', '.join(holding[:_MAX_SIMILAR])}" if holding else ""


def source_files(needle: bytes = b"") -> tuple[list[tuple[str, bytes]], int]:
    """Returns the source files of the current folder that hold some bytes.

    Returns:
        Paths and contents, by path; and how many files were too large, no text, or too many.
    """
    paths: list[str] = []
    num_entries = 0
    for folder, folders, names in os.walk("."):
        num_entries += len(folders) + len(names)
        if num_entries > _MAX_ENTRIES:
            break
        is_deep = folder.count("/") >= _MAX_DEPTH
        folders[:] = [] if is_deep else [f for f in folders if f[0] != "." and f not in _SKIPPED]
        files = (os.path.join(folder, n)[2:] for n in names if n.lower().endswith(_SUFFIXES))
        paths += [path for path in files if os.path.isfile(path) and not os.path.islink(path)]
    found, num_left_out, bytes_left = [], 0, _MAX_READ_BYTES
    for number, path in enumerate(sorted(paths)):
        data = read_regular(path) if number < _MAX_FILES else None
        if data is None or b"\0" in data or len(data) > bytes_left:
            num_left_out += 1
        elif needle in data:
            bytes_left -= len(data)
            found.append((path, data))
    return found, num_left_out


class Tags(NamedTuple):
    """The names of a Python file.

    Attributes:
        definitions: Line from 1, name with the names of what it is in, kind: ``class``,
            ``function``, ``variable``, ``attribute`` or, inside of a function, ``local``.
        uses: Line from 1 and name, with a dot before it where it is looked up in something.
        lines: The lines of code.
    """

    definitions: list[tuple[int, str, str]]
    uses: list[tuple[int, str]]
    lines: list[str]


def python_tags(data: bytes) -> Tags | None:
    """Returns the tags of a Python file in the order of lines, or None where it does not parse."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(data)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    kept: list[tuple[int, str, str]] = []
    bound: list[tuple[int, str, str]] = []
    uses: list[tuple[int, str]] = []
    waiting: list[tuple[ast.AST, str, frozenset[str] | None]] = [(tree, "", None)]
    while waiting:  # no recursion: trees can be deep
        node, scope, own = waiting.pop()
        if isinstance(node, _SCOPES):
            is_class = isinstance(node, ast.ClassDef)
            kind = "local" if own is not None else "class" if is_class else "function"
            kept.append((node.lineno, scope + node.name, kind))
            scope += node.name + "."
            own = own if is_class else _bound(node) | (own or frozenset())
        else:
            binding = _binding(node, scope, own)
            bound += binding
            uses += [] if binding else _uses(node, own)
        waiting += [(child, scope, own) for child in ast.iter_child_nodes(node)]
    first = {name: (line, name, kind) for line, name, kind in sorted(bound, reverse=True)}
    return Tags(sorted([*kept, *first.values()]), sorted(uses), _lines(data))


def _binding(node: ast.AST, scope: str, own: frozenset[str] | None) -> list[tuple[int, str, str]]:
    """Returns the variable or attribute that a node binds, if it does."""
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and own is None:
        return [(node.lineno, scope + node.id, "variable")]
    if isinstance(node, ast.Attribute) and not isinstance(node.ctx, ast.Load):
        is_own = isinstance(node.value, ast.Name) and node.value.id == "self"
        if is_own and scope.count("."):
            return [(node.lineno, f"{scope.split('.')[0]}.{node.attr}", "attribute")]
    return []


def _uses(node: ast.AST, own: frozenset[str] | None) -> list[tuple[int, str]]:
    """Returns the names that a node uses; those in ``own`` are local to functions around it."""
    if isinstance(node, ast.Attribute):
        return [(node.lineno, "." + node.attr)]
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
        return [(node.lineno, node.id)] if own is None or node.id not in own else []
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        names = [(getattr(a, "lineno", node.lineno), a.name) for a in node.names]
        return [(line, part) for line, name in names for part in name.split(".")]
    return []


def _bound(function: ast.AST) -> frozenset[str]:
    """Returns the names that a function binds itself."""
    nodes = list(ast.walk(function))
    stored = {n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    shared = {name for n in nodes if isinstance(n, ast.Global) for name in n.names}
    return frozenset(stored | {n.arg for n in nodes if isinstance(n, ast.arg)}) - shared


class _Definition(NamedTuple):
    path: str
    line: int
    name: str
    kind: str
    lines: list[str]


def _ranked(files: dict[str, Tags]) -> list[_Definition]:
    """Ranks what files define, the most used by other files first.

    A file that uses a name counts by the square root of how often it does, shared among the files
    that define the name. What is defined in a class is used only behind a dot. Names of several
    words count more, private, very short and built-in ones less, and so do definitions in tests.
    """
    definitions = [
        _Definition(path, line, name, kind, tags.lines)
        for path, tags in files.items()
        for line, name, kind in tags.definitions
        if kind not in _INNER
    ]
    definers: dict[str, set[str]] = {}
    for d in definitions:
        for use in _used_as(d.name):
            definers.setdefault(use, set()).add(d.path)
    counts: dict[str, Counter[str]] = {}
    for path, tags in files.items():
        for _, use in tags.uses:
            counts.setdefault(use, Counter())[path] += 1

    def key(d: _Definition) -> tuple[float, str, int, str]:
        score = sum(
            _weight(use) * math.sqrt(count) / len(definers[use])
            for use in _used_as(d.name)
            for path, count in counts.get(use, {}).items()
            if path != d.path
        )
        return -score * (_LESS if is_test(d.path) else 1), d.path, d.line, d.name

    return sorted(definitions, key=key)


def _used_as(name: str) -> list[str]:
    """Returns how a definition is used: behind a dot, and if it is in no class without one."""
    last = name.rpartition(".")[2]
    return [f".{last}"] if last != name else [last, f".{last}"]


def _weight(name: str) -> float:
    """Returns how much a use of a name says about the definition that it refers to."""
    name = name.lstrip(".")
    if name.startswith("_") or len(name) <= _SHORT or name in _BUILTINS:
        return _LESS
    return _MORE if _WORDS.search(name) else 1.0


def _drawn(order: list[_Definition], max_chars: int) -> tuple[str, int]:
    """Draws the first definitions that fit, by file, with the classes around them."""
    class_lines = {(d.path, d.name): d.line for d in order if d.kind == "class"}
    by_path: dict[str, dict[int, str]] = {}
    num_drawn = 0
    for d in order:
        parts = d.name.split(".")
        outer = [".".join(parts[:end]) for end in range(1, len(parts))]
        numbers = {d.line, *(class_lines[d.path, o] for o in outer if (d.path, o) in class_lines)}
        new = {  # Python counts more lines than there are line feeds where CR ends some
            n: f"{n:6}  {printable(''.join(d.lines[n - 1 : n]), _SIGNATURE_CHARS)}\n"
            for n in sorted(numbers - set(by_path.get(d.path, ())))
        }
        cost = sum(map(len, new.values()))
        cost += 0 if d.path in by_path else len(printable(d.path)) + 2
        if cost > max_chars:
            break
        max_chars -= cost
        num_drawn += 1
        by_path.setdefault(d.path, {}).update(new)
    text = "".join(
        f"{printable(path)}:\n{''.join(lines[n] for n in sorted(lines))}"
        for path, lines in by_path.items()
    )
    return text, num_drawn


def _listed(paths: list[str], max_chars: int) -> str:
    """Returns the names of files that are not parsed, as many as fit."""
    text = "Files that are not parsed:\n" if paths else ""
    for number, path in enumerate(paths):
        line = f"        {printable(path)}\n"
        if len(text) + len(line) > max_chars:
            return f"{text}        and {len(paths) - number} more\n"
        text += line
    return text


def is_test(path: str) -> bool:
    """Returns whether a path of the workspace looks like a test's."""
    return bool(_TEST_FILE.search(path))


def read_regular(path: str) -> bytes | None:
    """Returns the bytes of a regular file of bounded size that is no link, else None."""
    try:
        number = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except (OSError, ValueError):
        return None
    with os.fdopen(number, "rb") as file:
        status = os.fstat(number)
        if not stat.S_ISREG(status.st_mode) or status.st_size > _MAX_FILE_BYTES:
            return None
        return file.read(_MAX_FILE_BYTES)


def printable(text: str, max_chars: int = _LINE_CHARS) -> str:
    """Returns one line that no file name and no code can break out of, cut to a length."""
    line = text[: max_chars + 1].replace("\t", "    ").rstrip("\r\n ")
    line = "".join(c if c.isprintable() else repr(c)[1:-1] for c in line)
    return line if len(line) <= max_chars else line[:max_chars] + "..."


def _lines(data: bytes) -> list[str]:
    return data.decode("utf-8", "replace").split("\n")


def _inside(path: str) -> str:
    path = os.path.relpath(os.path.join(os.getcwd(), path.replace("\0", "")))
    return "" if path == "." else path


def _is_below(path: str, folders: list[str]) -> bool:
    return not folders or any(not f or path == f or path.startswith(f + "/") for f in folders)
