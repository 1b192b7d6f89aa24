"""A script in place of the model of nano-agent, which has no public way to give it one."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest


def replace_model(patch: pytest.MonkeyPatch, **functions: Callable[..., Any]) -> None:
    """Puts functions in place of those of litellm that nano-agent calls."""
    patch.setattr("nano.agent._litellm", SimpleNamespace(**functions))
