"""Isolated places to run commands: one protocol, interchangeable backends.

Read `protocol` first: the contract that every backend keeps, and the promises beyond it. `spec`
describes a sandbox, `select` finds a backend by name, and docs/reference/sandboxes.md lists the
promises of each. There are three backends:

    ``namespace``   namespaces and an overlay, cloned by a zygote process
    ``landlock``    a private copy, an inner server, a uid of its own and Landlock
    ``docker``      a loop of bash in a container

Code in `inside` runs in the processes of the first two backends, everything else in the owner,
which is the process that opens sandboxes. `backend_checks` holds the checks that backends share,
`ownership` removes folders of ended processes, and `setup_errors` converts failed steps of a set-up
into the errors that `open` documents.

``open`` of a ``namespace`` sandbox, file by file:

    1. select.py                finds the backend
    2. namespace.py             turns the spec into a `SandboxRequest`
    3. zygotes.py               the zygote of this process, started when first needed or lost
    4. inside/server.py         clones a first process in new namespaces; the list of its set-up
    5. inside/mounts.py         overlay, root, /tmp, /proc, mounts
    6. inside/lockdown.py       capabilities, limits, seccomp
    7. served_sandbox.py        waits until the sandbox is ready; the handle that the caller gets

``run``, file by file; `protocol` checks the arguments:

    1. served_sandbox.py        packs the request, unpacks the result; one call at a time
    2. inside/wire.py           the format of messages
    3. inside/serving.py        reads a request, answers it
    4. inside/commands.py       starts a bash, and waits for its end
    5. inside/processes.py      checks memory; lists and kills processes
"""

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
