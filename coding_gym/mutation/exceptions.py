"""The operator on exceptions, which replaces the raised or caught class."""

import ast
from collections.abc import Iterator

from coding_gym.mutation.sites import Change, Site

# Builtin exceptions that programmers confuse with each key, the most likely confusion first.
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
_WIDEST_CLASSES = {"Exception", "BaseException"}


def exception(site: Site) -> Iterator[Change]:
    """Replaces the class that a statement raises or catches."""
    if isinstance(site.node, ast.Raise) and site.node.exc is not None:
        raised_class = site.node.exc.func if isinstance(site.node.exc, ast.Call) else site.node.exc
        replacement = _confused_class(site.source.segment(raised_class))
        if replacement:
            yield site.swap(raised_class, replacement, bug="exception_class")
    elif isinstance(site.node, ast.ExceptHandler) and site.node.type is not None:
        yield from _change_caught(site, site.node.type)


def _change_caught(site: Site, caught_class: ast.expr) -> Iterator[Change]:
    members = caught_class.elts if isinstance(caught_class, ast.Tuple) else [caught_class]
    names = [site.source.segment(member) for member in members]
    if isinstance(caught_class, ast.Tuple):
        for index in range(len(names)):
            classes = names[:index] + names[index + 1 :]
            if classes:
                text = classes[0] if len(classes) == 1 else f"({', '.join(classes)})"
                yield site.swap(caught_class, text, 0.4, "exception_class")
    for member, name in zip(members, names, strict=True):
        replacement = _confused_class(name) if len(names) == 1 else ""
        for other in _SIBLINGS.get(name, ()):
            yield site.swap(member, other, 0.5, "exception_class" if other == replacement else "")
        if replacement and name not in _SIBLINGS:
            yield site.swap(member, replacement, bug="exception_class")


def _confused_class(name: str) -> str:
    """Returns the exception that programmers most likely confuse with ``name``; "" for none."""
    if name in _SIBLINGS:
        return _SIBLINGS[name][0]
    is_error = name.rpartition(".")[2].endswith(("Error", "Exception"))
    return "ValueError" if is_error and name not in _WIDEST_CLASSES else ""
