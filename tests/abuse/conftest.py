"""The arena in which every attack of a module takes place."""

from collections.abc import Iterator
from contextlib import closing

import pytest
from arena import Arena
from sentinels import Host

from coding_gym.sandbox.namespace import NamespaceBackend


@pytest.fixture(scope="module")
def arena() -> Iterator[Arena]:
    host = Host(NamespaceBackend().owner())
    try:
        with closing(Arena(host)) as opened:
            yield opened
    finally:
        host.close()
