"""What a server does before it makes its first sandbox."""

import shutil
import subprocess
import sys

import pytest

_SCRIPT = "from coding_gym.sandbox.zygote.rehearsal import rehearse; print(rehearse())"


@pytest.mark.skipif(shutil.which("unshare") is None, reason="needs unshare, of util-linux")
def test_commands_of_the_rehearsal_really_run():
    argv = ["unshare", "--user", "--map-root-user", "--pid", "--fork", "--kill-child"]
    done = subprocess.run(
        [*argv, sys.executable, "-c", _SCRIPT], capture_output=True, text=True, timeout=60
    )
    assert (done.stdout, done.stderr) == ("10\n", "")
