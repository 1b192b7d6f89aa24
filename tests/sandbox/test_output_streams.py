"""Output that is far larger than what is kept of it costs no memory."""

import re
import resource
from pathlib import Path

import pytest
from sandbox_fixtures import first_pid, make_sandbox

from coding_gym.sandbox.spec import Shell

pytestmark = pytest.mark.slow

_FLOOD = "echo first; head -c 64M /dev/zero; echo; echo last"


def _peak_kb(pid: int) -> int:
    status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    found = re.search(r"VmHWM:\s+(\d+) kB", status)
    assert found is not None
    return int(found[1])


@pytest.mark.parametrize("shell", ["fresh", "persistent"])
def test_a_flood_of_output_costs_neither_side_memory(shell: Shell) -> None:
    with make_sandbox(shell=shell) as sandbox:
        sandbox.run("echo warm", max_output_bytes=1 << 20)
        init = first_pid(sandbox)
        before = _peak_kb(init), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        result = sandbox.run(_FLOOD, timeout_s=100, max_output_bytes=1 << 20)
        after = _peak_kb(init), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert result.output.startswith("first\n")
    assert result.output.endswith("\nlast\n")
    assert result.truncated
    assert len(result.output) == pytest.approx(1 << 20, abs=100)
    # What is kept, a few times over: as collected, joined, sent and decoded.
    for old, new in zip(before, after, strict=True):
        assert new - old < 12 << 10
