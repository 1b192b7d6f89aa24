"""Fuzzed actions, read and run: nothing is raised, and nothing outside the workspace changes.

    python benchmarks/fuzz_actions.py --parsed 1000000 --executed 20000 --seed 0

Every action follows from seed and index, so that a run goes on with ``--parsed-from`` and
``--executed-from``, and one that fails is played again alone. Each of the executed runs in a real
sandbox, of which one serves 40; before and after them two folders of it outside the workspace, and
one of the host, are hashed. Prints one JSON line with counts; exit code 1 where something was
raised or changed.
"""

import argparse
import hashlib
import json
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import (
    FIRST_COMPLETED,
    Executor,
    Future,
    ProcessPoolExecutor,
    ThreadPoolExecutor,
    wait,
)
from dataclasses import dataclass, field
from pathlib import Path

from fuzzing import CANARIES, Action, action

from coding_gym.episode.lifecycle import Context, open_clean
from coding_gym.errors import PatchError
from coding_gym.sandbox import Sandbox
from coding_gym.sandbox.options import SandboxOptions
from coding_gym.task import FilesTree, Task
from coding_gym.tools import get_toolset, toolset_names
from coding_gym.tools.formats import ParsedAction, parse_action
from coding_gym.workspace import Template, TemplateStore, diff

PARSED_AT_ONCE, EXECUTED_AT_ONCE = 2000, 40
COMMAND_TIMEOUT_S = 0.5
MAX_CALLS = 128
MAX_REPORTED = 10
TREE = FilesTree(
    {
        "README.md": "# The shelf\n\nKeeps a few things.\n",
        "shelf.py": "def put(things, thing):\n    things.append(thing)\n    return things\n",
        "test_shelf.py": "from shelf import put\n\n\ndef test_put():\n    assert put([], 1)\n",
        "naïve.py": "x = 'für'\n",
    }
)
TASK = Task(task_id="fuzz", tree=TREE, problem_statement="", created_at="2024-01-01T00:00:00Z")
_SHOW = 'find "$@" -printf "%p %y %m %s %T@\\n" | sort; find "$@" -type f | sort | xargs sha256sum'


@dataclass
class Tally:
    """What came of some actions.

    Attributes:
        counts: By outcome.
        faults: What must not be, by the index of its action.
        slowest_s: CPU seconds of the action that took longest to read.
        slowest: Which one that was, and how many characters it has.
    """

    counts: Counter[str] = field(default_factory=Counter)
    faults: dict[str, str] = field(default_factory=dict)
    slowest_s: float = 0.0
    slowest: str = ""

    def add(self, other: "Tally") -> None:
        """Takes over what another tally has."""
        self.counts += other.counts
        self.faults |= other.faults
        slower = max(self, other, key=lambda one: one.slowest_s)
        self.slowest_s, self.slowest = slower.slowest_s, slower.slowest


def read(one: Action) -> ParsedAction:
    """Parses an action; whatever is raised here is a fault."""
    toolset = get_toolset(one.toolset)
    return parse_action(
        one.text, one.tool_format, toolset.schemas, text_formats=toolset.text_formats
    )


def check(parsed: ParsedAction) -> None:
    """Looks whether what was read can be kept, sent on and distinguished."""
    ids = [call.call_id for call in parsed.calls]
    assert len(ids) <= MAX_CALLS
    assert len(set(ids)) == len(ids)
    assert not (parsed.calls and parsed.error)
    for call in parsed.calls:
        json.dumps(call.to_json(), allow_nan=False).encode()
        json.dumps(call.to_json(), ensure_ascii=False).encode()


def parse_some(seed: int, start: int, stop: int) -> Tally:
    """Reads actions ``start`` to ``stop``."""
    tally = Tally()
    for index in range(start, stop):
        one = action(seed, index)
        began = time.process_time()
        try:
            parsed = read(one)
            check(parsed)
        except Exception as error:  # noqa: BLE001 - this is what is looked for
            tally.faults[f"parsed {index}"] = f"{error!r} {one.tool_format} {one.text[:200]!r}"
            continue
        took = time.process_time() - began
        if took > tally.slowest_s:
            tally.slowest_s = took
            tally.slowest = f"{index}, {len(one.text)} characters of {one.tool_format}"
        wrong = any(call.error for call in parsed.calls)
        kind = "call with an error" if wrong else "call" if parsed.calls else "no call"
        tally.counts["unreadable" if parsed.error else kind] += 1
    return tally


class Arena:
    """Runs actions in sandboxes.

    Args:
        seed: Of the whole run.
        template: What the sandboxes are made of.
        host: A folder of the host that actions try to reach.
    """

    def __init__(self, seed: int, template: Template, host: Path) -> None:
        self._seed, self._template, self._host = seed, template, str(host)

    def run(self, start: int, stop: int) -> Tally:
        """Runs actions ``start`` to ``stop`` in one sandbox, all for one toolset."""
        tally = Tally()
        names = toolset_names()
        name = names[start // EXECUTED_AT_ONCE % len(names)]
        context = open_clean(self._template, SandboxOptions(), COMMAND_TIMEOUT_S)
        with context.sandbox as sandbox:
            before = planted(sandbox)
            for index in range(start, stop):
                one = action(self._seed, index, name, (self._host, f"{self._host}/a.txt"), 1)
                try:
                    self._play(one, context, tally)
                except Exception as error:  # noqa: BLE001 - this is what is looked for
                    tally.faults[f"executed {index}"] = f"{error!r} {one.text[:200]!r}"
                    break
            else:
                if canaries(sandbox) != before:
                    tally.faults[f"executed {start}-{stop}"] = f"{name} changed what is outside"
        return tally

    def _play(self, one: Action, context: Context, tally: Tally) -> None:
        toolset, calls = get_toolset(one.toolset), read(one).calls
        for call in calls[:8]:  # some have a hundred, all of one kind
            result = toolset.execute(call, context)
            result.content.encode()
            tally.counts[f"{one.toolset}: {'done' if result.ok else 'refused'}"] += 1
        if not calls:
            toolset.on_no_call(context)
            tally.counts[f"{one.toolset}: no call"] += 1
        json.dumps(context.state)
        if calls:
            try:
                diff(context.sandbox, context.template)
            except PatchError:
                tally.counts["trees that are too much for a patch"] += 1


def planted(sandbox: Sandbox) -> str:
    """Writes canaries outside the workspace, links to them inside, and returns their digest."""
    for folder in CANARIES:
        for name in ("a.txt", "b.txt"):
            sandbox.write_file(f"{folder}/{name}", b"the sandbox's\n" * 9)
    sandbox.run(f"ln -s {CANARIES[0]} canary; ln -s {CANARIES[1]}/b.txt link.txt")
    return canaries(sandbox)


def canaries(sandbox: Sandbox) -> str:
    """Returns names, modes, times and content of all canaries of a sandbox."""
    return sandbox.run(f"set -- {' '.join(CANARIES)}; {_SHOW}", cwd="/").output


def digest(folder: Path) -> str:
    """Returns a hash of names, modes, times and content of all files below a folder."""
    total = hashlib.sha256()
    for path in sorted([folder, *folder.rglob("*")]):
        state = path.stat()
        total.update(f"{path} {state.st_mode} {state.st_mtime_ns} {state.st_size}\n".encode())
        if path.is_file():
            total.update(path.read_bytes())
    return total.hexdigest()


def over(
    what: str,
    pool: Executor,
    run: Callable[..., Tally],
    chunks: Iterator[tuple[int, ...]],
    bounds: tuple[int, int],
) -> Tally:
    """Has chunks done by a pool, few of them at a time, and says how far it is."""
    total, waiting, began, printed_at = Tally(), set[Future[Tally]](), time.monotonic(), 0.0
    num_done, first = 0, bounds[0]
    size = PARSED_AT_ONCE if what == "parsed" else EXECUTED_AT_ONCE
    while True:
        while len(waiting) < 8 and (chunk := next(chunks, None)) is not None:
            waiting.add(pool.submit(run, *chunk))
        if not waiting:
            return total
        done, waiting = wait(waiting, return_when=FIRST_COMPLETED)
        for future in done:
            total.add(future.result())
            num_done = min(num_done + size, bounds[1] - first)
        if time.monotonic() - printed_at > 5:
            printed_at = time.monotonic()
            rate = num_done / max(printed_at - began, 1e-9)
            line = f"{what} {first + num_done:,}/{bounds[1]:,}, {rate:,.0f} per s"
            safe = max(first, first + num_done - 8 * size)
            print(f"{line}; {len(total.faults)} faults; go on from {safe}", file=sys.stderr)


def main() -> int:
    """Runs what the command line says."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--parsed", type=int, default=1_000_000, help="the last action to read")
    parser.add_argument("--parsed-from", type=int, default=0)
    parser.add_argument("--executed", type=int, default=20_000, help="the last action to run")
    parser.add_argument("--executed-from", type=int, default=0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    total, began = Tally(), time.monotonic()
    with ProcessPoolExecutor(options.workers) as processes:
        bounds = (options.parsed_from, options.parsed)
        chunks = ((options.seed, *one) for one in _chunks(*bounds, PARSED_AT_ONCE))
        total.add(over("parsed", processes, parse_some, chunks, bounds))
    parsed_s = time.monotonic() - began
    with tempfile.TemporaryDirectory() as folder:
        host = Path(folder) / "canary"
        for name in ("a.txt", "b/c.txt", "b/d/e.txt"):
            (host / name).parent.mkdir(parents=True, exist_ok=True)
            (host / name).write_text("the host's\n" * 9)
        before = digest(host)
        template = TemplateStore("auto").get(TASK)
        arena = Arena(options.seed, template, host)
        bounds = (options.executed_from, options.executed)
        with ThreadPoolExecutor(2 * options.workers) as threads:
            ran = over("executed", threads, arena.run, _chunks(*bounds, EXECUTED_AT_ONCE), bounds)
        total.add(ran)
        if digest(host) != before:
            total.faults["host"] = "the canary of the host has changed"
    row = {
        "seed": options.seed,
        "parsed": options.parsed - options.parsed_from,
        "executed": options.executed - options.executed_from,
        "parsed_s": round(parsed_s, 1),
        "executed_s": round(time.monotonic() - began - parsed_s, 1),
        "slowest_parse_cpu_s": round(total.slowest_s, 4),
        "slowest_parse": total.slowest,
        "outcomes": dict(sorted(total.counts.items())),
        "faults": len(total.faults),
    }
    for where, fault in list(total.faults.items())[:MAX_REPORTED]:
        print(f"{where}: {fault}", file=sys.stderr)
    print(json.dumps(row))
    return int(bool(total.faults))


def _chunks(start: int, stop: int, size: int) -> Iterator[tuple[int, int]]:
    for first in range(start, stop, size):
        yield first, min(first + size, stop)


if __name__ == "__main__":
    sys.exit(main())
