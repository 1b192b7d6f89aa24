"""A missing extra is installed by name."""

import pytest

from coding_gym import optional
from coding_gym.errors import MissingDependencyError


def test_a_missing_extra_is_named_with_its_installation() -> None:
    with pytest.raises(MissingDependencyError, match=r"pip install 'coding-gym\[trl\]'"):
        optional.import_extra("coding_gym_no_such.module", "trl")
