"""Isolated places to run commands: one protocol, interchangeable backends."""

from coding_gym.host.interpreters import default_interpreter, find_interpreter
from coding_gym.sandbox.protocol import Probe, Promise, Sandbox, SandboxBackend, Snapshot
from coding_gym.sandbox.select import backend_names, get_backend, open_sandbox
from coding_gym.sandbox.spec import HOME, WORKDIR, Interpreter, Mount, SandboxLimits, SandboxSpec

__all__ = [
    "HOME",
    "WORKDIR",
    "Interpreter",
    "Mount",
    "Probe",
    "Promise",
    "Sandbox",
    "SandboxBackend",
    "SandboxLimits",
    "SandboxSpec",
    "Snapshot",
    "backend_names",
    "default_interpreter",
    "find_interpreter",
    "get_backend",
    "open_sandbox",
]
