"""Loops that end too early, too late, or leave something out."""

from collections.abc import Iterator

import libcst as cst

from coding_gym.tasks.synthesis.source import Edit, Place

_UNWRAPPED = {"sorted", "reversed"}


def swap_jump(node: cst.SimpleStatementLine, place: Place) -> Iterator[Edit]:
    """Ends the loop where only its turn should end, or the other way round."""
    small = node.body[-1]
    if isinstance(small, cst.Continue):
        yield place.source.put(small, "break")
    elif isinstance(small, cst.Break):
        yield place.source.put(small, "continue")


def shift_range(node: cst.Call, place: Place) -> Iterator[Edit]:
    """Counts from one further on, or to one before the end."""
    if not isinstance(node.func, cst.Name) or any(arg.star or arg.keyword for arg in node.args):
        return
    args = [place.source.code(arg.value) for arg in node.args]
    if node.func.value == "range" and args:
        end = args[0] if len(args) == 1 else args[1]
        start = "0" if len(args) == 1 else args[0]
        rest = "".join(f", {step}" for step in args[2:])
        yield place.source.put(node, f"range({start}, {end} - 1{rest})")
        yield place.source.put(node, f"range({start} + 1, {end}{rest})")
    elif node.func.value == "enumerate":
        start = f"{args[1]} + 1" if len(args) == 2 else "1"
        yield place.source.put(node, f"enumerate({args[0]}, {start})")
    elif node.func.value in _UNWRAPPED and len(args) == 1:
        yield place.source.put(node, f"list({args[0]})")


def shorten_loop(node: cst.For, place: Place) -> Iterator[Edit]:
    """Leaves out the first or the last of what a loop goes over."""
    plain = (cst.Name, cst.Attribute)
    if isinstance(node.iter, plain) and node.asynchronous is None:
        text = place.source.code(node.iter)
        yield place.source.put(node.iter, f"list({text})[1:]")
        yield place.source.put(node.iter, f"list({text})[:-1]")
