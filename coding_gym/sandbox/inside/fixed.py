"""Values that commands see in every sandbox, shared by the owner and the processes inside."""

import signal

WORKDIR = "/workspace"
HOME = "/home/agent"
TMP = "/tmp"  # noqa: S108 - inside the sandbox
PYTHON_FOLDER = "/sandbox/bin"  # has the links to the interpreter of the spec
BASH = "/bin/bash"
USER = "agent"  # unless an image names another user
UID = GID = 1000
# The time of all entries that have no other date, so that listings are equal: 2024-01-01, UTC.
DATE_S = 1_704_067_200
TIMEOUT_EXIT_CODE = 124  # that of `timeout`
KILLED_EXIT_CODE = 128 + signal.SIGKILL  # also if the memory limit was exceeded
