"""Nothing moves while a snapshot is taken, and everything goes on afterwards."""

import json
from pathlib import Path
from typing import TYPE_CHECKING

from sandbox_scene import BACKEND

from coding_gym.sandbox import SandboxSpec
from coding_gym.sandbox.zygote import stillness

if TYPE_CHECKING:
    from coding_gym.sandbox import Sandbox

# Runs in a sandbox, where "all processes" are those of the sandbox.
_TRY = """
import json, subprocess
busy = "while :; do echo x >> /tmp/log; done"
loops = [subprocess.Popen(["bash", "-c", f"({busy}) & {busy}"]) for _ in range(3)]
asleep = subprocess.Popen(["sleep", "1000"])
stuck = subprocess.Popen(["sleep", "1000"])
os.kill(stuck.pid, signal.SIGSTOP)
os.waitid(os.P_PID, stuck.pid, os.WSTOPPED)

def size():
    return os.stat("/tmp/log").st_size if os.path.exists("/tmp/log") else 0

def wait_for_more(than):
    while size() <= than:
        os.sched_yield()

wait_for_more(0)
with stopped():
    states = sorted({state for _, state in _states()})
    sizes = [size() for _ in range(2000)]
wait_for_more(sizes[-1])
after = dict(_states())
print(json.dumps({
    "states": states,
    "still": len(set(sizes)) == 1,
    "stuck": after[stuck.pid],
    "woken": after[asleep.pid] != "T",
}))
"""


def test_every_process_stops_and_those_that_ran_go_on(sandbox: "Sandbox") -> None:
    source = Path(stillness.__file__).read_text(encoding="utf-8")
    done = sandbox.run("python -", stdin=(source + _TRY).encode(), timeout_s=60)
    assert json.loads(done.output) == {
        "states": ["T"],
        "still": True,
        "stuck": "T",
        "woken": True,
    }


def test_background_processes_pause_for_a_snapshot_and_end_with_a_restore() -> None:
    count = "i=0; while :; do i=$((i+1)); echo $i > one; echo $i > two; done"
    spec = SandboxSpec(shell="persistent")
    with BACKEND.open(spec) as sandbox:
        sandbox.run(f"cd /tmp; ({count}) & counter=$!; until [ -s two ]; do :; done")
        snapshot = sandbox.snapshot()
        first = int(sandbox.read_file("/tmp/one") or 0)
        wait = f"until [ $(cat one two | sort -n | tail -1) -gt {first} ] 2> /dev/null; do :; done"
        assert sandbox.run(f"{wait}; kill -0 $counter && echo counts on").output == "counts on\n"
        sandbox.restore(snapshot)
        # pid 1 is out of sight, so bash is alone.
        seen = sandbox.run("jobs; set -- /proc/[0-9]*; echo $#; pwd; echo [$counter]").output
        assert seen == "1\n/workspace\n[]\n"
    with BACKEND.open(snapshot.spec, snapshot=snapshot) as fork:
        numbers = [int(text) for text in fork.run("cat /tmp/one /tmp/two").output.split()]
        assert max(numbers) - min(numbers) <= 1
