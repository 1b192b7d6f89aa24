"""Fixtures of the tests that wear the machine down."""

from collections.abc import Iterator

import pytest
from arena import Arena, opened_arena


@pytest.fixture(scope="module")
def arena() -> Iterator[Arena]:
    with opened_arena() as opened:
        yield opened
