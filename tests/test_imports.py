"""Importing any module of the package does nothing but define what it holds."""

import subprocess
import sys

SCRIPT = """
import importlib, os, pkgutil, re, sys, threading
import coding_gym

heavy = {"pydantic", "git", "docker", "torch", "ray", "tiktoken", "coding_gym.sandbox"}
print("at once:", sorted(heavy & sys.modules.keys()))

from coding_gym.errors import MissingDependencyError

# Importing them fails.
trainers = ["torch", "ray", "stable_baselines3", "sb3_contrib", "trl", "openenv", "verifiers"]
sys.modules.update(dict.fromkeys([*trainers, "verl", "nemo_gym", "inspect_ai"]))

def state():
    try:
        has_children = bool(os.waitpid(-1, os.WNOHANG))
    except ChildProcessError:
        has_children = False
    return sys.path[:], dict(os.environ), os.getcwd(), threading.active_count(), has_children

before = state()
names = [m.name for m in pkgutil.walk_packages(coding_gym.__path__, "coding_gym.")]
for name in names:
    try:
        importlib.import_module(name)
    except MissingDependencyError as missing:  # a class made of a trainer's own
        doors = ("coding_gym.adapters.", "coding_gym.evaluation.inspect_log")
        assert name.startswith(doors), name
        assert re.search(r"run: pip install .*\\[[a-z0-9-]+\\]", str(missing)), missing
    assert state() == before, name
print(len(names), "coding_gym.grading.inside.supervisor" in names)
"""


def test_importing_has_no_side_effect_and_loads_nothing_heavy() -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", SCRIPT],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    at_once, last = done.stdout.splitlines()
    assert at_once == "at once: []"
    count, has_supervisor = last.split()
    assert int(count) > 100
    assert has_supervisor == "True"
