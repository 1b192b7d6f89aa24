"""The template ``keyword``: adds, drops or flips what the called function knows."""

import ast
from collections.abc import Iterator, Mapping

from coding_gym.repair.sites import Proposal, Site

# Values to add, by the name of the called builtin or method and by keyword.
_KNOWN: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "sorted": {"key": ("str.lower", "len", "str"), "reverse": ("True",)},
    "sort": {"key": ("str.lower", "len", "str"), "reverse": ("True",)},
    "min": {"key": ("len", "str.lower"), "default": ("None", "0")},
    "max": {"key": ("len", "str.lower"), "default": ("None", "0")},
    "open": {"encoding": ('"utf-8"',)},
    "read_text": {"encoding": ('"utf-8"',)},
    "write_text": {"encoding": ('"utf-8"',)},
    "zip": {"strict": ("True",)},
    "split": {"maxsplit": ("1",)},
    "rsplit": {"maxsplit": ("1",)},
}
# Methods whose ``maxsplit`` may be given by position.
_POSITIONAL = {"split": 2, "rsplit": 2}


def keyword(site: Site) -> Iterator[Proposal]:
    """Adds a keyword, drops one, flips a boolean one."""
    for node in site.nodes():
        if not isinstance(node, ast.Call):
            continue
        for given in node.keywords:
            yield from _change(site, node, given)
        yield from _add(site, node)


def _change(site: Site, node: ast.Call, given: ast.keyword) -> Iterator[Proposal]:
    if given.arg is None:
        return
    if isinstance(given.value, ast.Constant) and isinstance(given.value.value, bool):
        yield site.swap(given.value, str(not given.value.value), 1.0)
    text = site.source.text
    start, end = site.source.span(given)
    comma = text.rfind(",", site.source.span(node.func)[1], start)
    if comma >= 0 and not text[comma + 1 : start].strip():
        yield site.put(comma, end, "", 0.6)
    elif len(node.args) + len(node.keywords) == 1:
        yield site.put(start, end, "", 0.6)


def _add(site: Site, node: ast.Call) -> Iterator[Proposal]:
    name = node.func.attr if isinstance(node.func, ast.Attribute) else ""
    if isinstance(node.func, ast.Name):
        name = node.func.id
    given = {keyword.arg for keyword in node.keywords}
    if None in given or len(node.args) >= _POSITIONAL.get(name, 99):
        return
    for keyword_name, values in _KNOWN.get(name, {}).items():
        if keyword_name in given:
            continue
        for value in (*_seen(site, keyword_name), *values):
            yield _insert(site, node, _text(name, node, keyword_name, value))


def _text(name: str, node: ast.Call, keyword_name: str, value: str) -> str:
    # str.split takes no keyword before the separator, so the separator is spelled out.
    if name in _POSITIONAL and not node.args:
        return f"None, {value}"
    return f"{keyword_name}={value}"


def _insert(site: Site, node: ast.Call, text: str) -> Proposal:
    end = site.source.span(node)[1] - 1
    before = site.source.text[:end].rstrip()
    joint = {"(": "", ",": " "}.get(before[-1], ", ")
    return site.put(len(before), end, joint + text, 0.7)


def _seen(site: Site, keyword_name: str) -> list[str]:
    """Returns the values that the same file gives to ``key=`` elsewhere."""
    if keyword_name != "key":
        return []
    values = {
        site.source.segment(node.value): None
        for node in site.source.parents
        if isinstance(node, ast.keyword) and node.arg == keyword_name
    }
    return list(values)[:2]
