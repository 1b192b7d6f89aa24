"""The template ``exception``: widens, narrows or exchanges what an ``except`` catches."""

import ast
import builtins
from collections.abc import Iterator

from coding_gym.repair.sites import Proposal, Site

# Builtin exceptions that stand for one another in practice.
_SISTERS = {
    "KeyError": ("IndexError", "AttributeError", "ValueError"),
    "IndexError": ("KeyError", "ValueError"),
    "ValueError": ("TypeError", "KeyError"),
    "TypeError": ("ValueError", "AttributeError"),
    "AttributeError": ("TypeError", "KeyError"),
    "UnicodeDecodeError": ("UnicodeEncodeError",),
    "FileNotFoundError": ("NotADirectoryError", "IsADirectoryError", "PermissionError"),
    "StopIteration": ("IndexError",),
    "ZeroDivisionError": ("ValueError",),
}


def exception(site: Site) -> Iterator[Proposal]:
    """Catches another class, a wider or a narrower one."""
    if not isinstance(site.statement, ast.Try):
        return
    for handler in site.statement.handlers:
        caught = handler.type
        if caught is None:
            continue
        members = caught.elts if isinstance(caught, ast.Tuple) else [caught]
        names = [site.source.segment(member) for member in members]
        if isinstance(caught, ast.Tuple):
            for index in range(len(names)):
                kept = names[:index] + names[index + 1 :]
                yield site.swap(caught, _tuple(kept), 0.4)
        for other, weight in _additions(site, names):
            yield site.swap(caught, _tuple([*names, other]), weight)
        for member, name in zip(members, names, strict=True):
            for other, weight in _exchanges(name):
                yield site.swap(member, other, weight)


def _tuple(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"({', '.join(names)})"


def _additions(site: Site, names: list[str]) -> Iterator[tuple[str, float]]:
    found = {other: 0.8 for name in names for other in _SISTERS.get(name, ())}
    for other in _raised(site):
        found.setdefault(other, 0.6)
    for other, weight in found.items():
        if other not in names:
            yield other, weight


def _raised(site: Site) -> Iterator[str]:
    """Yields the exceptions that the same file raises or catches by name."""
    for node in site.source.parents:
        if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
            if isinstance(node.exc.func, ast.Name):
                yield node.exc.func.id
        elif isinstance(node, ast.ExceptHandler) and isinstance(node.type, ast.Name):
            yield node.type.id


def _exchanges(name: str) -> Iterator[tuple[str, float]]:
    for other in _SISTERS.get(name, ()):
        yield other, 0.5
    kind = getattr(builtins, name, None)
    if not isinstance(kind, type) or not issubclass(kind, Exception) or kind is Exception:
        return
    parent = kind.__base__
    if parent is not None and parent is not Exception:
        yield parent.__name__, 0.7
    yield "Exception", 0.6
    for child in sorted(kind.__subclasses__(), key=lambda c: c.__name__):
        if getattr(builtins, child.__name__, None) is child:
            yield child.__name__, 0.2
