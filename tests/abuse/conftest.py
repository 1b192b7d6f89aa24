"""The arena in which every attack of a module takes place."""

from collections.abc import Iterator

import pytest
from arena import Arena, opened_arena


@pytest.fixture(scope="module")
def arena() -> Iterator[Arena]:
    with opened_arena() as opened:
        yield opened
