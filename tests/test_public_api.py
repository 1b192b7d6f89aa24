"""Public names, imports without side effects, and the error tree."""

import ast
import importlib
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import gymnasium as gym
import pytest

from coding_gym import errors
from coding_gym.adapters import rllib
from coding_gym.tasks import load_tasks
from coding_gym.text.tokenizers import get_tokenizer

SCRIPT = """
import importlib, os, pkgutil, re, sys, threading
import coding_gym

heavy = {"pydantic", "git", "docker", "torch", "ray", "tiktoken", "coding_gym.sandbox"}
print("loaded:", sorted(heavy & sys.modules.keys()))

from coding_gym.errors import MissingDependencyError

# Importing a module whose entry is None fails.
trainers = ["torch", "ray", "stable_baselines3", "sb3_contrib", "trl", "openenv", "verifiers"]
sys.modules.update(dict.fromkeys([*trainers, "verl", "nemo_gym", "inspect_ai"]))

def state():
    try:
        has_children = bool(os.waitpid(-1, os.WNOHANG))
    except ChildProcessError:
        has_children = False
    return sys.path[:], dict(os.environ), os.getcwd(), threading.active_count(), has_children

before, extras = state(), set()
names = [m.name for m in pkgutil.walk_packages(coding_gym.__path__, "coding_gym.")]
for name in names:
    try:
        importlib.import_module(name)
    except MissingDependencyError as missing:  # the module subclasses a trainer's class
        extra = re.search(r"run: pip install .*\\[([a-z0-9-]+)\\]", str(missing))
        extras.add((name.removeprefix("coding_gym."), extra[1]))
    assert state() == before, name
print(extras)
print(len(names), "coding_gym.grading.inside.supervisor" in names)
"""
ALL = [
    value
    for value in vars(errors).values()
    if isinstance(value, type) and issubclass(value, errors.CodingGymError)
]


def test_the_public_names_are_sorted_and_exist() -> None:
    for name in ["coding_gym", "coding_gym.rewards", "coding_gym.vector", "coding_gym.wrappers"]:
        module = importlib.import_module(name)
        assert module.__all__ == sorted(module.__all__), name
        assert all(hasattr(module, public) for public in module.__all__), name


def test_importing_has_no_side_effect_and_loads_no_heavy_package() -> None:
    process = subprocess.run(
        [sys.executable, "-W", "error", "-c", SCRIPT],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (process.returncode, process.stderr) == (0, "")
    loaded, extras, last = process.stdout.splitlines()
    assert loaded == "loaded: []"
    assert ast.literal_eval(extras) == {
        ("adapters.nemo_gym", "nemo-gym"),
        ("adapters.openenv", "openenv"),
        ("adapters.sb3", "sb3"),
        ("adapters.verifiers", "verifiers"),
        ("adapters.verifiers_plugin", "verifiers"),
        ("adapters.verl", "verl"),
        ("evaluation.inspect_log", "inspect"),
    }
    count, has_supervisor = last.split()
    assert int(count) > 100
    assert has_supervisor == "True"


@pytest.mark.parametrize(
    ("package", "extra", "use"),
    [
        ("datasets", "datasets", lambda _: load_tasks("owner/dataset")),
        ("pyarrow", "datasets", load_tasks),
        ("ray.tune.registry", "rllib", lambda _: rllib.register()),
        ("transformers", "hf", lambda path: get_tokenizer(f"hf:{path}")),
    ],
)
def test_a_missing_package_names_its_extra(
    package: str, extra: str, use: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    (tmp_path / "rows.parquet").write_bytes(b"PAR1")
    with pytest.raises(errors.MissingDependencyError, match=rf"pip install .*\[{extra}\]"):
        use(tmp_path / "rows.parquet")


def test_every_error_is_built_from_one_message_and_pickles() -> None:
    for kind in ALL:
        error = pickle.loads(pickle.dumps(kind("what, got, way out")))  # noqa: S301 - trusted bytes
        assert type(error) is kind, kind
        assert str(error) == "what, got, way out", kind


def test_the_remedy_survives_pickling() -> None:
    error = errors.SandboxUnavailableError("no mounts", "run as root")
    copy = pickle.loads(pickle.dumps(error))  # noqa: S301 - trusted bytes
    assert (str(copy), copy.problem, copy.remedy) == (
        *("no mounts; run as root", "no mounts", "run as root"),
    )


def test_errors_can_be_caught_by_the_types_they_refine() -> None:
    assert issubclass(errors.InvalidTaskError, ValueError)
    assert issubclass(errors.UnknownTaskError, LookupError)
    assert issubclass(errors.EpisodeError, gym.error.ResetNeeded)
    assert issubclass(errors.SandboxError, errors.InfrastructureError)
    assert not issubclass(errors.PatchError, errors.InfrastructureError)
