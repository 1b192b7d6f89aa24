"""Python source is parsed on many threads at once."""

import ast
import gc
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from coding_gym import syntax

SOURCE = "\n".join(
    f"def f{n}(a, b):\n    for x in range(b):\n        y = [a + (b * (x - {n})) for z in (1, 2)]\n"
    for n in range(200)
)


def test_threads_may_parse_at_the_same_time() -> None:
    """Threads take turns in the middle of what the interpreter does, as collections run then."""

    def take_turns(_phase: str, _info: dict[str, int]) -> None:
        for _ in range(20):
            pass

    interval, thresholds = sys.getswitchinterval(), gc.get_threshold()
    sys.setswitchinterval(1e-6)
    gc.set_threshold(20)
    gc.callbacks.append(take_turns)
    try:
        with ThreadPoolExecutor(4) as pool:
            trees = list(pool.map(lambda _: len(syntax.parse(SOURCE).body), range(24)))
    finally:
        gc.callbacks.remove(take_turns)
        gc.set_threshold(*thresholds)
        sys.setswitchinterval(interval)
    assert trees == [200] * 24


def test_what_is_not_python_is_a_syntax_error() -> None:
    with pytest.raises(SyntaxError):
        syntax.parse("def f(:")
    assert isinstance(syntax.parse("# coding: latin-1\nx = '\xe9'".encode("latin-1")), ast.Module)
