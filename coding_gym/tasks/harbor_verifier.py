"""The grader of an exported task. A text that Harbor's verifier runs; never imported here.

`coding_gym.tasks.harbor_export` writes it beside its settings. It keeps to the standard library of
Python 3.8, grades the tree at the task's folder and writes the reward, whatever happens.

The tests run twice, in a process of another user where this one is root. Each unit of tests is
negated in exactly one run, drawn in secret: there a correct program fails it, in the other one it
passes it. Nothing of the graded tree runs or is imported here.
"""

import ctypes
import fnmatch
import json
import os
import random
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Files = dict[str, tuple[bytes, int]]  # content and mode by path

_LOGS = Path("/logs/verifier")
_PR_SET_DUMPABLE, _PR_SET_CHILD_SUBREAPER = 4, 36
_NOBODY = 65534
_MARGIN_S = 20.0


def _read_files(folder: Path) -> "Files":
    """Returns the files of a tree, without links and git's own; files without rights are empty."""
    found: Files = {}
    for parent, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if name != ".git"]
        for path in (Path(parent, name) for name in names):
            if path.is_file() and not path.is_symlink():
                place = path.relative_to(folder).as_posix()
                found[place] = (path.read_bytes(), path.stat().st_mode & 0o777)
    return found


def _clear(folder: Path) -> None:
    for path in folder.iterdir():
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink()


def _write_files(folder: Path, files: "Files") -> None:
    """Makes a tree hold these files alone, all of them writable for the tests."""
    _clear(folder)
    for place, (data, mode) in files.items():
        path = folder / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        path.chmod(mode | 0o600)
    if os.getuid() == 0:
        for path in (folder, *folder.rglob("*")):
            os.chown(path, _NOBODY, _NOBODY)


def _graded(files: "Files", own: "Files", spec: "dict[str, Any]") -> "Files":
    """Returns the tree to grade: without the policy's changes of tests and their configuration."""

    def is_graders(place: str) -> bool:
        forms = ("/" + place, "/" + place.lower())
        return place not in spec["gold"] and any(
            fnmatch.fnmatchcase(form, glob) for form in forms for glob in spec["graders"]
        )

    kept = {place: file for place, file in files.items() if not is_graders(place)}
    return {**own, **kept}


def _negated(files: "Files", spec: "dict[str, Any]", negated: "set[str]") -> "Files":
    """Returns the tree with the lines of each location in the plain or in the negated form."""
    changed = dict(files)
    for location, forms in spec["places"].items():
        path = location.partition("::")[0]
        data, mode = changed[path]
        lines = data.decode("latin-1").split("\n")
        for number, line in forms["negated" if location in negated else "plain"].items():
            lines[int(number)] = line
        changed[path] = ("\n".join(lines).encode("latin-1"), mode)
    return changed


def _demote() -> None:
    if os.getuid() == 0:
        os.setgroups([])
        os.setgid(_NOBODY)
        os.setuid(_NOBODY)


def _run(spec: "dict[str, Any]", programs: "dict[str, str]", home: str) -> "set[str]":
    """Returns the tests that passed; none where anything but the reporter spoke."""
    frame = secrets.token_hex(16)
    start = json.dumps(
        {
            "framework": "",
            "loader": spec["loader"],
            "bootstrap": programs["bootstrap.py"],
            "program": programs["pytest_program.py"],
            "environment": spec["environment"],
        }
    ).encode()
    child = {
        "nonce": secrets.token_hex(16),
        "lowest": 100 + secrets.randbelow(100),
        "settings": {"paths": spec["paths"], "options": spec["options"]},
    }
    config = {"frame": frame, "timeout_s": spec["timeout_s"], "child": child}
    process = subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", programs["supervisor.py"]],
        cwd=spec["workdir"],
        env={**os.environ, "HOME": home, "PYTHONHASHSEED": "0"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        preexec_fn=_demote,
    )
    try:
        data = b"%010d" % len(start) + start + json.dumps(config).encode()
        output, _ = process.communicate(data, timeout=spec["timeout_s"] + _MARGIN_S)
    except subprocess.TimeoutExpired:
        return set()
    finally:
        _end_all()
    lines = output.decode("utf-8", "replace").splitlines()
    found = [line[len(frame) :] for line in lines if line.startswith(frame + " {")]
    return _passed(json.loads(found[-1])) if found else set()


def _passed(verdict: "dict[str, Any]") -> "set[str]":
    phases: dict[str, list[Any]] = {}
    for record in verdict["records"]:
        if record[0] == "test":
            phases.setdefault(record[1], []).append(record[2:5])
    good = [[phase, "passed", False] for phase in ("setup", "call", "teardown")]
    is_whole = bool(verdict["records"]) and verdict["records"][-1][0] == "end"
    is_odd = verdict["num_strays"] or verdict["flooded"] or verdict["timed_out"] or not is_whole
    print(verdict["tail"])  # noqa: T201 — for people, in Harbor's log
    return set() if is_odd else {test for test, seen in phases.items() if seen == good}


def _end_all() -> None:
    """Kills every process that the tests started: orphans are children of this process."""
    while True:
        try:
            if os.waitpid(-1, os.WNOHANG)[0]:
                continue
        except ChildProcessError:
            return
        for pid in _children():
            os.kill(pid, signal.SIGKILL)
        os.waitpid(-1, 0)


def _children() -> "list[int]":
    """Returns child processes that run; those that hide from /proc take seconds to find."""
    listed = (int(path.name) for path in Path("/proc").glob("[0-9]*"))
    last = int(Path("/proc/sys/kernel/pid_max").read_text())
    return list(filter(_is_child, listed)) or list(filter(_is_child, range(2, last)))


def _is_child(pid: int) -> bool:
    try:
        return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None
    except ChildProcessError:
        return False


def _grade(folder: Path) -> bool:
    spec = json.loads((folder / "spec.json").read_text())
    names = ("supervisor.py", "bootstrap.py", "pytest_program.py")
    programs = {name: (folder / name).read_text() for name in names}
    own, tree = _read_files(folder / "own"), Path(spec["workdir"])
    if os.access(folder, os.W_OK):
        _clear(folder)  # code under test could read there what is negated
    files = _graded(_read_files(tree), own, spec)
    draws: tuple[set[str], set[str]] = (set(), set())
    for unit in spec["units"]:
        draws[random.SystemRandom().getrandbits(1)].update(unit)
    passed = []
    for negated in draws:
        _write_files(tree, _negated(files, spec, negated))
        with tempfile.TemporaryDirectory() as home:
            if os.getuid() == 0:
                os.chown(home, _NOBODY, _NOBODY)
            passed.append(_run(spec, programs, home))
    for test, locations in spec["expected"].items():
        wanted = [draws[number].isdisjoint(locations) for number in (0, 1)]
        seen = [test in passed[number] for number in (0, 1)]
        if seen != wanted:
            print(f"{test}: passed in the two runs: {seen}, wanted {wanted}")  # noqa: T201
            return False
    return True


def _write_reward(reward: int) -> None:
    for path in (_LOGS / "reward.txt", _LOGS / "reward.json"):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        elif path.exists() or path.is_symlink():
            path.unlink()
    if reward >= 0:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
        with os.fdopen(os.open(_LOGS / "reward.json", flags, 0o644), "w") as file:
            json.dump({"reward": reward}, file)


def _main() -> None:
    libc = ctypes.CDLL(None)
    libc.prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)  # no process of the same user reads this one
    libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    _LOGS.mkdir(parents=True, exist_ok=True)
    if os.getuid() == 0:  # the tests run as another user
        _LOGS.chmod(0o700)
        Path(__file__).parent.chmod(0o700)
    _write_reward(-1)
    is_resolved = False
    try:
        is_resolved = _grade(Path(__file__).parent)
    finally:
        _end_all()
        _write_reward(int(is_resolved))


if __name__ == "__main__":
    _main()
