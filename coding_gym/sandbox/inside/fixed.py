"""Constants of sandboxes, for the owner and the processes inside."""

import signal

WORKDIR = "/workspace"
HOME = "/home/agent"
TMP = "/tmp"  # noqa: S108 - inside the sandbox
PYTHON_FOLDER = "/sandbox/bin"  # has the links to the interpreter of the spec
BASH = "/bin/bash"
HOSTNAME = "sandbox"
USER = "agent"  # unless an image names another user
UID = GID = 1000
# The modification time of files and folders without another date: 2024-01-01, UTC.
DATE_S = 1_704_067_200
# Exit codes as bash reports them.
CANNOT_RUN_CODE, NO_PROGRAM_CODE = 126, 127
KILLED_CODE = 128 + signal.SIGKILL  # also if the memory limit was exceeded
TIMEOUT_CODE = 124  # the code of the program `timeout`
MAX_DATA_BYTES = 64 << 20  # of a file or standard input in one call
OPAQUE = "user.overlay.opaque"  # the attribute of a folder that hides a folder of a lower layer
