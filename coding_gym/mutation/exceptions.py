"""The operator on exceptions: another class is raised or caught."""

import ast
import builtins
from collections.abc import Iterator

from coding_gym.mutation.sites import Change, Site

# Builtin exceptions that stand for one another in practice; the first is the likeliest mistake.
_SIBLINGS = {
    "KeyError": ("IndexError", "AttributeError", "ValueError"),
    "IndexError": ("KeyError", "ValueError"),
    "ValueError": ("TypeError", "KeyError"),
    "TypeError": ("ValueError", "AttributeError"),
    "AttributeError": ("TypeError", "KeyError"),
    "LookupError": ("ValueError",),
    "OSError": ("ValueError",),
    "ImportError": ("AttributeError",),
    "RuntimeError": ("ValueError",),
    "NotImplementedError": ("ValueError",),
    "UnicodeDecodeError": ("UnicodeEncodeError",),
    "UnicodeEncodeError": ("UnicodeDecodeError",),
    "FileNotFoundError": ("NotADirectoryError", "IsADirectoryError", "PermissionError"),
    "StopIteration": ("IndexError",),
    "OverflowError": ("ZeroDivisionError",),
    "ZeroDivisionError": ("ValueError",),
}
_WIDEST = {"Exception", "BaseException"}


def exception(site: Site) -> Iterator[Change]:
    """Raises another class; catches another class, a wider or a narrower one."""
    if isinstance(site.node, ast.Raise) and site.node.exc is not None:
        raised = site.node.exc.func if isinstance(site.node.exc, ast.Call) else site.node.exc
        mistaken = _mistaken(site.source.segment(raised))
        if mistaken:
            yield site.swap(raised, mistaken, bug="exception_class")
    elif isinstance(site.node, ast.ExceptHandler) and site.node.type is not None:
        yield from _caught(site, site.node.type)


def _caught(site: Site, caught: ast.expr) -> Iterator[Change]:
    members = caught.elts if isinstance(caught, ast.Tuple) else [caught]
    names = [site.source.segment(member) for member in members]
    if isinstance(caught, ast.Tuple):
        for index in range(len(names)):
            kept = names[:index] + names[index + 1 :]
            if kept:
                yield site.swap(caught, _tuple(kept), 0.4, "exception_class")
    for other, weight in _additions(site, names):
        yield site.swap(caught, _tuple([*names, other]), weight)
    for member, name in zip(members, names, strict=True):
        mistaken = _mistaken(name) if len(names) == 1 else ""
        for other, weight in _exchanges(name):
            yield site.swap(member, other, weight, "exception_class" if other == mistaken else "")
        if mistaken and name not in _SIBLINGS:
            yield site.swap(member, mistaken, bug="exception_class")


def _mistaken(name: str) -> str:
    """The class that is raised or caught by mistake instead of another; "" for none."""
    if name in _SIBLINGS:
        return _SIBLINGS[name][0]
    is_error = name.rpartition(".")[2].endswith(("Error", "Exception"))
    return "ValueError" if is_error and name not in _WIDEST else ""


def _tuple(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"({', '.join(names)})"


def _additions(site: Site, names: list[str]) -> Iterator[tuple[str, float]]:
    found = {other: 0.8 for name in names for other in _SIBLINGS.get(name, ())}
    for other in _named(site):
        found.setdefault(other, 0.6)
    for other, weight in found.items():
        if other not in names:
            yield other, weight


def _named(site: Site) -> Iterator[str]:
    """Yields the exceptions that the same file raises or catches by name."""
    for node in site.source.parents:
        if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
            if isinstance(node.exc.func, ast.Name):
                yield node.exc.func.id
        elif isinstance(node, ast.ExceptHandler) and isinstance(node.type, ast.Name):
            yield node.type.id


def _exchanges(name: str) -> Iterator[tuple[str, float]]:
    for other in _SIBLINGS.get(name, ()):
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
