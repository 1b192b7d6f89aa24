"""The wrong method of a text."""

from collections.abc import Iterator

import libcst as cst

from coding_gym.tasks.synthesis.source import Edit, Place

_OTHERS = {
    "strip": ("lstrip", "rstrip"),
    "lstrip": ("strip", "rstrip"),
    "rstrip": ("strip", "lstrip"),
    "startswith": ("endswith",),
    "endswith": ("startswith",),
    "lower": ("upper",),
    "upper": ("lower",),
    "title": ("capitalize",),
    "capitalize": ("title",),
    "split": ("rsplit",),
    "rsplit": ("split",),
    "find": ("rfind",),
    "rfind": ("find",),
    "index": ("rindex",),
    "rindex": ("index",),
    "partition": ("rpartition",),
    "rpartition": ("partition",),
    "ljust": ("rjust",),
    "rjust": ("ljust",),
    "removeprefix": ("removesuffix",),
    "removesuffix": ("removeprefix",),
    "isdigit": ("isalpha",),
    "isalpha": ("isalnum",),
    "isalnum": ("isalpha",),
    "isspace": ("isalnum",),
    "isupper": ("islower",),
    "islower": ("isupper",),
    "append": ("extend",),
    "extend": ("append",),
}


def swap_method(node: cst.Call, place: Place) -> Iterator[Edit]:
    """Calls the sibling of a method of texts and lists."""
    if isinstance(node.func, cst.Attribute):
        for name in _OTHERS.get(node.func.attr.value, ()):
            yield place.source.put(node.func.attr, name)
