"""A process without free file descriptors gets an error that says so, and keeps its sandboxes."""

import subprocess
import sys

_OWNER = """
import os, resource
from coding_gym.errors import SandboxError
from coding_gym.sandbox import SandboxSpec, open_sandbox

first = open_sandbox(SandboxSpec())
_, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (64, hard))
taken = []
try:
    while True:
        taken.append(os.open(os.devnull, os.O_RDONLY))
except OSError:
    pass
refused = 0
for _ in range(6):  # with none free, then with one more at each attempt
    try:
        open_sandbox(SandboxSpec()).close()
    except SandboxError:
        refused += 1
    os.close(taken.pop())
for descriptor in taken:
    os.close(descriptor)
alive = first.run("echo alive").output.strip()
print(refused > 0, alive, open_sandbox(SandboxSpec()).run("true").ok)
"""


def test_running_out_of_descriptors_is_our_failure_and_nobodys_end() -> None:
    done = subprocess.run(
        [sys.executable, "-c", _OWNER], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.stdout, done.stderr) == ("True alive True\n", "")
