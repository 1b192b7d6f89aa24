"""A script in place of the model of nano-agent, which has no public way to give it one."""

import importlib.metadata
import importlib.util
from collections.abc import Callable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from repositories import commit


def replace_model(patch: pytest.MonkeyPatch, **functions: Callable[..., Any]) -> None:
    """Puts functions in place of those of litellm that nano-agent calls."""
    patch.setattr("nano.agent._litellm", SimpleNamespace(**functions))


def completion_of(message: dict[str, Any]) -> dict[str, Any]:
    """What litellm returns for a message of the model."""
    return {"choices": [{"message": SimpleNamespace(model_dump=lambda: message)}]}


def commit_files(root: Path, files: Mapping[str, str]) -> None:
    """Writes the files of a repository and commits them."""
    commit(root, {name: text.encode(errors="surrogateescape") for name, text in files.items()})


def similarity_of_nano() -> Callable[[str, str], float]:
    """Their function, loaded from its file: the wheel's package is called ``tests``, as ours is."""
    assert importlib.metadata.version("nano-agent") == "5.0.0"
    files = importlib.metadata.files("nano-agent") or []
    (path,) = (f.locate() for f in files if str(f) == "tests/utils.py")
    spec = importlib.util.spec_from_file_location("nanos_tests_utils", str(path))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    similarity: Callable[[str, str], float] = module.unified_diff_similarity
    return similarity
