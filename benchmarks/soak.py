"""Wears the namespace sandbox out: thousands of cycles, hundreds of kills; nothing may be left.

    python benchmarks/soak.py --cycles 10000 --kills 200

Cycles open a sandbox, use it and close it; descriptors, processes, mounts, cgroups, files and
memory must be afterwards what they were before. Kills send SIGKILL to an owner of sandboxes, to
either process of its zygote, or to the first process of one sandbox, at random moments while its
threads open, run, snapshot, restore and grade. After an owner's end nothing of it may be left;
else every call that the kill cut short must raise ``SandboxError`` in bounded time, every thread
must work on, and after the first process of one sandbox the others must not notice.

Prints one JSON line; the exit code is 1 where something did not hold.
"""

import argparse
import json
import logging
import os
import random
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from figures import at_least, machine, progress
from soak_kills import kills
from soak_state import State, grown, settle

from coding_gym.errors import InvalidArgumentError
from coding_gym.sandbox import Mount, SandboxBackend, SandboxSpec
from coding_gym.sandbox.namespace import NamespaceBackend

_WARM_UP = 30
_MISSING = SandboxSpec(mounts=(Mount(source=Path("/no/such/folder"), target="/opt/x"),))


def layer(folder: Path, backend: SandboxBackend) -> None:
    """Makes a folder that sandboxes may own."""
    made = folder / "layer"
    (made / "package").mkdir(parents=True)
    for number in range(20):
        (made / "package" / f"module_{number}.py").write_text(f"NUMBER = {number}\n" * 50)
    if os.geteuid() == 0:
        for path in (made, *made.rglob("*")):
            os.chown(path, *backend.owner())


def cycle(backend: SandboxBackend, spec: SandboxSpec, number: int) -> None:
    """Opens a sandbox, uses it in one of several ways, and closes it."""
    with backend.open(spec) as sandbox:
        assert sandbox.run("echo x >> package/module_0.py; rm -r package/module_1.py").ok
        sandbox.write_file("new/file", b"x" * 10_000)
        if number % 10 == 0:
            sandbox.restore(sandbox.snapshot())
            assert sandbox.read_file("new/file") == b"x" * 10_000
        if number % 25 == 0:
            assert sandbox.run("(setsid sleep 100 &); sleep 100 & echo on").num_leftovers >= 1
        if number % 100 == 0:
            assert sandbox.run("sleep 10", timeout_s=0.05).timed_out
    if number % 25 == 0:
        try:
            backend.open(_MISSING)
        except InvalidArgumentError:
            return
        raise AssertionError("a mount that does not exist was accepted")


def cycles(backend: SandboxBackend, folder: Path, count: int, *, is_alone: bool) -> dict[str, Any]:
    """Returns what was there before and after so many cycles, and what should not have grown."""
    spec = SandboxSpec(layers=(folder / "layer",))
    for number in range(_WARM_UP):
        cycle(backend, spec, number)
    settle()
    before = State.now(folder)
    began = time.perf_counter()
    for number in range(1, count + 1):
        cycle(backend, spec, number)
        if number % 1000 == 0:
            progress(f"  {number} cycles")
    took_s = time.perf_counter() - began
    settle()
    after = State.now(folder)
    return {
        "count": count,
        "per_s": round(count / took_s, 1),
        "before": before.to_json(),
        "after": after.to_json(),
        "problems": grown(before, after, count, is_alone=is_alone),
    }


def main() -> None:
    """Runs what was asked for and says whether it held."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--cycles", type=at_least(0), default=10_000, help="open and close (default 10000)"
    )
    parser.add_argument("--kills", type=at_least(0), default=200, help="SIGKILLs (default 200)")
    parser.add_argument("--seed", type=int, default=0, help="of who is killed when")
    parser.add_argument("--on-disk", action="store_true", help="changes on disk, as on old kernels")
    parser.add_argument(
        "--among-others", action="store_true", help="other programs run: ignore the free memory"
    )
    options = parser.parse_args()
    logging.getLogger("coding_gym").setLevel(logging.ERROR)
    backend = NamespaceBackend(changes="disk" if options.on_disk else "auto")
    with tempfile.TemporaryDirectory(prefix="coding_gym-soak-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        _keep_everything_in(folder)
        layer(folder, backend)
        report: dict[str, Any] = {"machine": machine(), "on_disk": options.on_disk}
        if options.cycles:
            progress("cycles")
            report["cycles"] = cycles(
                backend, folder, options.cycles, is_alone=not options.among_others
            )
        if options.kills:
            progress("kills")
            chance = random.Random(options.seed)  # noqa: S311 - repeatable, not secret
            report["kills"] = kills(folder, options.kills, chance, on_disk=options.on_disk)
    problems = [p for part in ("cycles", "kills") for p in report.get(part, {}).get("problems", [])]
    print(json.dumps(report | {"held": not problems}))
    sys.exit(bool(problems))


def _keep_everything_in(folder: Path) -> None:
    """Makes temporary files and caches, of owners too, countable."""
    for variable, place in (("TMPDIR", "tmp"), ("XDG_CACHE_HOME", "cache")):
        (folder / place).mkdir()
        os.environ[variable] = str(folder / place)
    tempfile.tempdir = None


if __name__ == "__main__":
    main()
