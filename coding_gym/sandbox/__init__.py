"""Sandboxes, which run commands in isolation: one contract, interchangeable backends.

Read `protocol` first: the contract of all backends, and the guarantees (`Promise`) that a backend
may lack. `spec` describes a sandbox, `select` finds a backend by name, and
docs/reference/sandboxes.md lists the guarantees of each backend. There are three backends:

    ``namespace``   namespaces and an overlay, cloned by a zygote process
    ``landlock``    a private copy of the files, a separate uid and Landlock rules
    ``docker``      a loop of bash in a container

Code in `inside` runs in the processes of the first two backends. Other modules run in the owner,
which is the process that opens sandboxes. `backend_checks` holds the checks that backends share,
`ownership` removes folders of ended processes, and `setup_errors` converts failed steps of a set-up
into the errors that `open` documents. docs/architecture.md follows a reset and a step through the
files.
"""

from coding_gym.host.interpreters import default_interpreter, find_interpreter
from coding_gym.sandbox.protocol import Probe, Promise, Sandbox, SandboxBackend, Snapshot
from coding_gym.sandbox.select import get_backend, open_sandbox
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
    "default_interpreter",
    "find_interpreter",
    "get_backend",
    "open_sandbox",
]
