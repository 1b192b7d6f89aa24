"""Breaks one promise after another in a copy of this repository, and says which no test notices.

The table `tests/mutants.toml` holds small patches, each of which removes something that the README,
the docs or the design promise, and the tests that should fail then. Patches are applied one at a
time; the repository itself is never changed.

A mutant is *killed* where at least one of its tests fails, *survives* where all of them pass, and
is an *error* where nothing can be said: its tests cannot be collected, a fixture of theirs fails,
all are skipped, or the run does not end. A test that hangs fails after `--timeout` seconds
(pytest-timeout), and so kills.

    python scripts/mutants.py                      # all of them; exit code 1 unless all are killed
    python scripts/mutants.py --only seccomp       # those whose promise or file holds that text
    python scripts/mutants.py --check              # only whether the table fits the source
"""

import argparse
import ast
import contextlib
import os
import queue
import shutil
import signal
import subprocess
import sys
import tempfile
import textwrap
import time
import tomllib
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, TypeVar

TABLE = "tests/mutants.toml"
KILLED, SURVIVED, ERROR, UNDECIDED = "killed", "SURVIVED", "ERROR", "NO END"
_TEST_TIMEOUT_S = 120
_RUN_TIMEOUT_S = 1200.0
_FAILED_TESTS = 1  # pytest's exit code where tests failed, and nothing else did
_NO_TESTS = "no test ran"

T = TypeVar("T")

_running: set[int] = set()  # process groups of tests under way


class TableError(Exception):
    """The table or the command line cannot be used; the message says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutant:
    """One way to break a promise.

    Attributes:
        promise: What is promised, in one claim.
        source: The page that promises it.
        file: The file to change.
        old: Text that occurs once in the file.
        new: What takes its place.
        tests: Test files or test ids of which at least one must fail.
    """

    promise: str
    source: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]

    def applied(self, text: str) -> str:
        """Returns the file's text with the promise broken.

        Raises:
            TableError: The old text is not there exactly once.
        """
        count = text.count(self.old)
        if count != 1:
            raise TableError(f"{self.promise}: old text occurs {count} times in {self.file}")
        return text.replace(self.old, self.new)


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What the tests said of one mutant.

    Attributes:
        status: `KILLED`, `SURVIVED`, `ERROR`, or `UNDECIDED` where they did not end.
        seconds: How long they took.
        detail: The first test that failed, or what went wrong.
    """

    status: str
    seconds: float
    detail: str


def load_table(root: Path) -> dict[str, Any]:
    """Returns the table as it is written.

    Raises:
        TableError: It cannot be read.
    """
    path = root / TABLE
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, tomllib.TOMLDecodeError) as error:
        raise TableError(f"cannot read {path}: {error}") from None


def read_mutants(table: dict[str, Any]) -> list[Mutant]:
    """Returns the mutants of a table.

    Raises:
        TableError: An entry lacks a field, or has one too many.
    """
    names = [field.name for field in fields(Mutant)]
    mutants = []
    for number, entry in enumerate(table.get("mutant", []), 1):
        label = entry.get("promise", f"mutant {number}")
        if sorted(entry) != sorted(names):
            raise TableError(f"{label}: an entry has {', '.join(names)}, got {', '.join(entry)}")
        mutants.append(Mutant(**{**entry, "tests": tuple(entry["tests"])}))
    return mutants


def problems(root: Path, table: dict[str, Any], mutants: Sequence[Mutant]) -> list[str]:
    """Returns what keeps the table from being run as it is, one line for each problem."""
    found = []
    promises = Counter(mutant.promise for mutant in mutants)
    found += [f"{promise}: is there twice" for promise, count in promises.items() if count > 1]
    least = table.get("promises", 0)
    if len(promises) < least:
        found.append(f"there are {len(promises)} promises, fewer than the {least} of the table")
    for mutant in mutants:
        found += [f"{mutant.promise}: {said}" for said in _problems_of(root, mutant)]
    return found


def _problems_of(root: Path, mutant: Mutant) -> Iterator[str]:
    if not (root / mutant.source).is_file():
        yield f"there is no page {mutant.source}"
    if not mutant.tests:
        yield "it names no test"
    for test in mutant.tests:
        yield from _test_problems(root, test)
    try:
        text = (root / mutant.file).read_text(encoding="utf-8")
    except OSError:
        yield f"there is no file {mutant.file}"
        return
    count = text.count(mutant.old)
    if count != 1:
        yield f"the old text occurs {count} times in {mutant.file}"
    elif mutant.old == mutant.new:
        yield "the old and the new text are equal"
    else:
        yield from _syntax_problems(mutant.applied(text))


def _test_problems(root: Path, test: str) -> Iterator[str]:
    file, _, names = test.partition("::")
    function = names.partition("[")[0].rpartition("::")[2]
    try:
        text = (root / file).read_text(encoding="utf-8")
    except OSError:
        yield f"there is no test file {file}"
        return
    if function and f"def {function}(" not in text:
        yield f"there is no test {function} in {file}"


def _syntax_problems(text: str) -> Iterator[str]:
    try:
        ast.parse(text)
    except SyntaxError as error:
        yield f"the new text does not parse: line {error.lineno}: {error.msg}"


def copy_repository(root: Path, target: Path) -> None:
    """Copies all files that git does not ignore.

    Raises:
        TableError: The folder is no git repository.
    """
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],  # noqa: S607
        cwd=root,
        capture_output=True,
        check=False,
    )
    if listed.returncode:
        raise TableError(f"{root} is not a git repository, whose files could be copied")
    for name in filter(None, listed.stdout.decode().split("\0")):
        source = root / name
        if source.is_file() or source.is_symlink():  # else it is deleted, and not committed yet
            place = target / name
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, place, follow_symlinks=False)


class Copies:
    """Copies of the repository, one for each worker.

    Args:
        root: The repository.
        folder: Where the copies go.
        number: How many.
    """

    def __init__(self, root: Path, folder: Path, number: int) -> None:
        self._free: queue.SimpleQueue[Path] = queue.SimpleQueue()
        self._num_changes = 0
        for index in range(number):
            copy = folder / f"copy{index}"
            copy_repository(root, copy)
            self._free.put(copy)

    @contextmanager
    def one(self) -> Iterator[Path]:
        """Gives a copy that nobody else uses."""
        copy = self._free.get()
        try:
            yield copy
        finally:
            self._free.put(copy)

    @contextmanager
    def changed(self, file: str, change: Callable[[str], str]) -> Iterator[Path]:
        """Gives a copy in which one file is changed, and restores the file afterwards."""
        with self.one() as copy:
            path = copy / file
            before, facts = path.read_bytes(), path.stat()
            self._num_changes += 1
            # Byte code is told from outdated byte code by the size and the second of its source.
            seconds = int(facts.st_mtime) + self._num_changes
            try:
                path.write_text(change(before.decode()), encoding="utf-8")
                os.utime(path, (seconds, seconds))
                yield copy
            finally:
                path.write_bytes(before)
                os.utime(path, ns=(facts.st_atime_ns, facts.st_mtime_ns))


def run_tests(
    copy: Path,
    tests: Sequence[str],
    *,
    timeout_s: float,
    test_timeout_s: float,
    jobs: int = 1,
    marks: str = "",
) -> Verdict:
    """Runs tests of a copy against that copy, until the first one fails.

    Args:
        copy: The copy.
        tests: Paths or ids of tests.
        timeout_s: Seconds for all of them.
        test_timeout_s: Seconds after which a single test has failed.
        jobs: How many processes share them.
        marks: Which of them are run, as ``pytest -m`` takes it; all when "".
    """
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="mutants-report-") as folder:
        report = Path(folder) / "report.xml"
        command = [
            *(sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider"),
            *("--tb=short", "-o", f"timeout={test_timeout_s:g}", f"--junitxml={report}"),
            *(("-n", str(jobs)) if jobs > 1 else ()),
            *(("-m", marks) if marks else ()),
            *tests,
        ]
        # Processes that a test starts, wherever they run, import the copy as well.
        env = {**os.environ, "PYTHONPATH": str(copy)}
        code, output = _run(command, copy, env, timeout_s)
        seconds = time.monotonic() - began
        if code is None and report.exists():  # they ended, and a process of theirs did not
            code = _FAILED_TESTS
        elif code is None:
            return Verdict(status=UNDECIDED, seconds=seconds, detail=f"no end in {timeout_s:g} s")
        cases = _read_report(report)
    status, detail = _judge(code, cases)
    if status == ERROR and not cases:
        detail = f"{detail}: {' | '.join(output.strip().splitlines()[-8:])}"
    return Verdict(status=status, seconds=seconds, detail=detail)


def _run(
    command: Sequence[str], folder: Path, env: dict[str, str], timeout_s: float
) -> tuple[int | None, str]:
    """Runs a command with all it starts; returns its exit code (None out of time) and output."""
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(
            command, cwd=folder, env=env, stdin=subprocess.DEVNULL, stdout=output, stderr=output,
            start_new_session=True,
        )  # fmt: skip
        _running.add(process.pid)
        try:
            code: int | None = process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            code = None
        finally:  # after an interrupt too
            _running.discard(process.pid)
            _kill(process.pid)
            process.wait()
        output.seek(0)
        return code, output.read().decode("utf-8", "replace")


def _kill(group: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(group, signal.SIGKILL)


def _read_report(path: Path) -> dict[str, list[str]]:
    """Returns tests by how they ended: ``failure``, ``error``, ``skipped``, ``""``.

    Each is its name and, where it did not pass, the first words of the reason, so that a failure
    for another reason than the broken promise is seen.
    """
    cases: dict[str, list[str]] = {}
    if path.exists():
        for case in ET.parse(path).iter("testcase"):  # noqa: S314 - pytest wrote it just now
            ends = [child for child in case if child.tag in ("failure", "error", "skipped")]
            name = f"{case.get('classname', '').rpartition('.')[2]}::{case.get('name', '')}"
            reasons = [textwrap.shorten(end.get("message", ""), 70) for end in ends[:1]]
            kind = ends[0].tag if ends else ""
            cases.setdefault(kind, []).append(": ".join([name, *reasons]))
    return cases


def _judge(code: int, cases: dict[str, list[str]]) -> tuple[str, str]:
    if code == 0:
        if cases.get(""):
            return SURVIVED, f"{len(cases[''])} tests passed"
        return ERROR, _NO_TESTS
    if code == _FAILED_TESTS and cases.get("failure"):
        return KILLED, cases["failure"][0]
    if cases.get("error"):
        return ERROR, f"{cases['error'][0]}: its module or a fixture fails"
    return ERROR, f"pytest ended with code {code}"


def run_each(
    items: Sequence[T], test: Callable[[T], Verdict], name: Callable[[T], str], jobs: int
) -> list[Verdict]:
    """Tests mutants, several at a time, and prints a line for each as it ends.

    Args:
        items: The mutants.
        test: Runs the tests of one.
        name: What is printed of one.
        jobs: How many are tested at one time.
    """
    with ThreadPoolExecutor(jobs) as pool:
        futures = {pool.submit(test, item): item for item in items}
        try:
            for number, future in enumerate(as_completed(futures), 1):
                verdict, said = future.result(), name(futures[future])
                at = f"{number:>{len(str(len(items)))}}/{len(items)}"
                by = f"\n    {verdict.detail}" if verdict.status == KILLED else ""
                print(f"{at} {verdict.status:<8} {verdict.seconds:6.1f} s  {said}{by}", flush=True)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            for group in tuple(_running):  # else the pool would wait for them
                _kill(group)
            raise
        return [future.result() for future in futures]


def check_unchanged(
    copies: Copies, tests: Sequence[str], options: argparse.Namespace, marks: str = ""
) -> None:
    """Makes sure that all tests pass where nothing is broken.

    Raises:
        TableError: They do not.
    """
    files = {test for test in tests if "::" not in test}
    tests = [test for test in tests if test in files or test.partition("::")[0] not in files]
    print(f"{len(tests)} test files or ids on the unchanged source …", flush=True)
    with copies.one() as copy:
        verdict = run_tests(
            copy,
            tests,
            timeout_s=_RUN_TIMEOUT_S,
            test_timeout_s=options.timeout,
            jobs=options.jobs,
            marks=marks,
        )
    if verdict.status != SURVIVED:
        raise TableError(f"tests fail on the unchanged source: {verdict.detail}")
    print(f"{verdict.detail} in {verdict.seconds:.1f} s", flush=True)


def summarise(mutants: Sequence[Mutant], verdicts: Sequence[Verdict]) -> int:
    """Prints who survived, who could not be judged and the counts; returns the exit code."""
    counts = Counter(verdict.status for verdict in verdicts)
    for status in (ERROR, UNDECIDED, SURVIVED):
        for mutant, verdict in zip(mutants, verdicts, strict=True):
            if verdict.status == status:
                print(f"\n{status}: {mutant.promise} ({mutant.source})")
                print(f"  {mutant.file}: {verdict.detail}")
                print(f"  tests: {' '.join(mutant.tests)}")
    num_errors = counts[ERROR] + counts[UNDECIDED]
    print(
        f"\n{len(mutants)} promises broken: {counts[KILLED]} killed, {counts[SURVIVED]} survived, "
        f"{num_errors} errors; {sum(verdict.seconds for verdict in verdicts):.0f} s of tests"
    )
    return 0 if counts[KILLED] == len(mutants) else 1


def add_common_options(parser: argparse.ArgumentParser) -> None:
    """Adds the options that this program shares with `random_mutants.py`."""
    parser.add_argument(
        "--jobs",
        type=positive,
        default=os.cpu_count() or 1,
        help="mutants that are tested at one time; one for each core by default",
    )
    parser.add_argument(
        "--timeout",
        type=positive,
        default=_TEST_TIMEOUT_S,
        metavar="SECONDS",
        help="after which a single test has failed (default: %(default)s)",
    )
    parser.add_argument(
        "--unchecked", action="store_true", help="do not run the tests on the unchanged source"
    )
    parser.add_argument(
        "--root",
        type=Path,
        default=Path(__file__).resolve().parents[1],
        help="the repository; that of this program by default",
    )


def end_with_tests() -> None:
    """Lets the program end its tests too where it is stopped, also in the background."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)


def positive(text: str) -> int:
    """Returns the number that an argument says."""
    if not text.isdecimal() or not int(text):
        raise argparse.ArgumentTypeError(f"must be a whole number of at least 1, got {text!r}")
    return int(text)


def _parser() -> argparse.ArgumentParser:
    summary, _, rest = (__doc__ or "").partition("\n\n")
    parser = argparse.ArgumentParser(
        description=summary, epilog=rest, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--only", metavar="TEXT", default="", help="only mutants whose promise or file holds this"
    )
    parser.add_argument("--list", action="store_true", help="print the promises, and run nothing")
    parser.add_argument("--check", action="store_true", help="check the table, and run nothing")
    add_common_options(parser)
    return parser


def _main(options: argparse.Namespace) -> int:
    table = load_table(options.root)
    mutants = read_mutants(table)
    found = problems(options.root, table, mutants)
    if found:
        raise TableError("\n".join(["the table does not fit the source:", *found]))
    wanted = options.only.lower()
    mutants = [m for m in mutants if wanted in m.promise.lower() or wanted in m.file.lower()]
    if not mutants:
        raise TableError(f"no promise and no file holds {options.only!r}; see --list")
    if options.list:
        for mutant in mutants:
            print(f"{mutant.promise}  ({mutant.source}; {mutant.file})")
    if options.list or options.check:
        print(f"{len(mutants)} promises")
        return 0
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        copies = Copies(options.root, Path(folder), min(options.jobs, len(mutants)))
        tests = dict.fromkeys(test for mutant in mutants for test in mutant.tests)
        if not options.unchecked:
            check_unchanged(copies, list(tests), options)

        def test(mutant: Mutant) -> Verdict:
            with copies.changed(mutant.file, mutant.applied) as copy:
                return run_tests(
                    copy, mutant.tests, timeout_s=_RUN_TIMEOUT_S, test_timeout_s=options.timeout
                )

        verdicts = run_each(mutants, test, lambda mutant: mutant.promise, options.jobs)
    return summarise(mutants, verdicts)


def main() -> int:
    """Runs the program and returns its exit code; 2 where it could not begin."""
    end_with_tests()
    try:
        return _main(_parser().parse_args())
    except TableError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())
