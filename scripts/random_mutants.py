"""Breaks this package at random places, and says in each part of it how much the tests notice.

Each mutant changes one operator, number, condition, loop, decorator or exception (the operators of
cosmic-ray), in a copy of the repository, and runs the fast tests among those that the table
`tests/mutants.toml` names for that package. The places are drawn by the seed, for each package in
proportion to its lines. The kill rate is reported and not aimed at: some mutants change nothing
that anybody could notice, and the tests are never written for the ones that were drawn.

A mutant that keeps a module or a fixture from working is killed as well. One whose tests do not end
within `--limit` seconds counts as a survivor.

    pip install cosmic-ray
    python scripts/random_mutants.py --seed 0 --count 200 --json report.json
    python scripts/random_mutants.py --only rewards --count 20

Mutants of `sandbox` change code that kills processes and mounts folders. Run them where nothing
else is lost, for example behind `unshare --mount --pid --fork --mount-proc`.
"""

import argparse
import ast
import difflib
import json
import random
import re
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

from mutants import (
    SURVIVED,
    UNDECIDED,
    Copies,
    TableError,
    Verdict,
    add_common_options,
    check_unchanged,
    end_with_tests,
    load_table,
    positive,
    run_each,
    run_tests,
)

PACKAGE = "coding_gym"
_BUNDLED = f"{PACKAGE}/tasks/bundled/"  # programs that are data
_VALUES = "values"  # what the table calls the modules that are in no package of their own
_FAST = "not slow and not trainers and not stress"  # as in the Makefile
_LEAST_PER_PACKAGE = 3
_MAX_TRIES = 1000
_ORDERS = "Eq|NotEq|Lt|LtE|Gt|GtE"
_ARITHMETIC = "Add|Sub|Mul|FloorDiv|Div|Mod|LShift|RShift|BitAnd"
# All but those that take arguments, turn `X | None` of an annotation into nonsense, or compare
# numbers by identity.
_OPERATORS = re.compile(
    r"core/(AddNot|ExceptionReplacer|NumberReplacer|RemoveDecorator|ReplaceAndWithOr"
    r"|ReplaceOrWithAnd|ReplaceBreakWithContinue|ReplaceContinueWithBreak|ReplaceFalseWithTrue"
    r"|ReplaceTrueWithFalse|ZeroIterationForLoop|ReplaceUnaryOperator_Delete_(Not|USub)"
    r"|ReplaceComparisonOperator_(Is_IsNot|IsNot_Is|In_NotIn|NotIn_In)"
    rf"|ReplaceComparisonOperator_({_ORDERS})_({_ORDERS})"
    rf"|ReplaceBinaryOperator_({_ARITHMETIC})_({_ARITHMETIC}))"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RandomMutant:
    """A change at a random place.

    Attributes:
        package: The part of the package that is changed.
        file: The file.
        operator: cosmic-ray's name of the change.
        change: The lines that change, as in a diff.
        text: The whole file afterwards.
    """

    package: str
    file: str
    operator: str
    change: str
    text: str


def package_of(file: str) -> str:
    """Returns the name of the package that a file of `PACKAGE` is part of."""
    _, *folders, _ = Path(file).parts
    return folders[0] if folders else _VALUES


def source_files(copy: Path) -> dict[str, list[str]]:
    """Returns the source files of a copy by package, empty ones left out."""
    found: dict[str, list[str]] = defaultdict(list)
    for path in sorted((copy / PACKAGE).rglob("*.py")):
        file = path.relative_to(copy).as_posix()
        if not file.startswith(_BUNDLED) and path.stat().st_size:
            found[package_of(file)].append(file)
    return dict(found)


def shares(sizes: dict[str, int], count: int) -> dict[str, int]:
    """Divides a number of mutants among packages, by size, with a few for each.

    >>> shares({"a": 900, "b": 100, "c": 1}, 20)
    {'a': 13, 'b': 4, 'c': 3}
    """
    least = min(_LEAST_PER_PACKAGE, max(1, count // len(sizes)))
    rest = max(0, count - least * len(sizes))
    exact = {name: rest * size / sum(sizes.values()) for name, size in sizes.items()}
    found = {name: least + int(part) for name, part in exact.items()}
    order = sorted(exact, key=lambda name: (int(exact[name]) - exact[name], name))
    for name in order[: least * len(sizes) + rest - sum(found.values())]:
        found[name] += 1
    return found


@cache
def _operators() -> dict[str, Any]:
    try:
        from cosmic_ray import plugins
    except ImportError:
        raise TableError("cosmic-ray is not installed; run: pip install cosmic-ray") from None
    names = sorted(name for name in plugins.operator_names() if _OPERATORS.fullmatch(name))
    return {name: plugins.get_operator(name)() for name in names}


def _positions(source: str) -> dict[Any, list[tuple[str, int]]]:
    """Returns the possible changes at each position of a source: operator and occurrence."""
    from cosmic_ray.ast import ast_nodes, get_ast

    found: dict[Any, list[tuple[str, int]]] = defaultdict(list)
    nodes = list(ast_nodes(get_ast(source)))
    for name, operator in _operators().items():
        positions = (position for node in nodes for position in operator.mutation_positions(node))
        for occurrence, position in enumerate(positions):
            found[position].append((name, occurrence))
    return found


def draw(copy: Path, files: Sequence[str], rng: random.Random) -> Iterator[RandomMutant]:
    """Yields different mutants of some files, drawn by their lines, without end.

    Raises:
        TableError: There are hardly any.
    """
    operators = _operators()
    from cosmic_ray.mutating import mutate_code

    sources = {file: (copy / file).read_text(encoding="utf-8") for file in files}
    sizes = [source.count("\n") for source in sources.values()]
    positions: dict[str, dict[Any, list[tuple[str, int]]]] = {}
    drawn = set()
    for _ in range(_MAX_TRIES):
        (file,) = rng.choices(files, sizes)
        if file not in positions:
            positions[file] = _positions(sources[file])
        if not positions[file]:
            continue
        name, occurrence = rng.choice(positions[file][rng.choice(sorted(positions[file]))])
        if (file, name, occurrence) in drawn:
            continue
        drawn.add((file, name, occurrence))
        text = mutate_code(sources[file], operators[name], occurrence)
        if text is not None and _is_another_program(sources[file], text):
            yield RandomMutant(
                package=package_of(file),
                file=file,
                operator=name,
                change=_change(sources[file], text),
                text=text,
            )
    raise TableError(f"too few places to change in {', '.join(files)}")


def _is_another_program(before: str, after: str) -> bool:
    try:
        return ast.dump(ast.parse(before)) != ast.dump(ast.parse(after))
    except SyntaxError:
        return False


def _change(before: str, after: str) -> str:
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), n=0, lineterm="")
    return "\n".join(line for line in lines if not line.startswith(("---", "+++")))


def draw_all(copy: Path, options: argparse.Namespace) -> list[RandomMutant]:
    """Returns all mutants of a run, package by package."""
    files = source_files(copy)
    files = {name: found for name, found in files.items() if options.only in ("", name)}
    if not files:
        raise TableError(f"there is no package {options.only!r} in {PACKAGE}")
    sizes = {name: sum(map(_num_lines, (copy / f for f in found))) for name, found in files.items()}
    mutants = []
    for name, number in shares(sizes, options.count).items():
        # By name, so that a package's mutants do not depend on other packages.
        source = draw(copy, files[name], random.Random(f"{options.seed} {name}"))  # noqa: S311
        mutants += [next(source) for _ in range(number)]
    return mutants


def _num_lines(path: Path) -> int:
    return path.read_bytes().count(b"\n")


def report(mutants: Sequence[RandomMutant], verdicts: Sequence[Verdict]) -> None:
    """Prints what survived, and the kill rate of each package."""
    by_package: dict[str, list[Verdict]] = defaultdict(list)
    for mutant, verdict in zip(mutants, verdicts, strict=True):
        by_package[mutant.package].append(verdict)
        if verdict.status in (SURVIVED, UNDECIDED):
            print(f"\n{mutant.file}  {mutant.operator}  ({verdict.status}, {verdict.detail})")
            print(mutant.change)
    print(f"\n{'package':<12} {'mutants':>8} {'killed':>8} {'rate':>6}")
    for name, found in [*sorted(by_package.items()), ("all", list(verdicts))]:
        num_killed = sum(_is_killed(verdict) for verdict in found)
        print(f"{name:<12} {len(found):>8} {num_killed:>8} {num_killed / len(found):>6.0%}")


def _is_killed(verdict: Verdict) -> bool:
    return verdict.status not in (SURVIVED, UNDECIDED)


def _parser() -> argparse.ArgumentParser:
    summary, _, rest = (__doc__ or "").partition("\n\n")
    parser = argparse.ArgumentParser(
        description=summary, epilog=rest, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seed", type=int, default=0, help="draws the places (default: 0)")
    parser.add_argument(
        "--count", type=positive, default=200, help="mutants in all (default: %(default)s)"
    )
    parser.add_argument(
        "--only", metavar="PACKAGE", default="", help="only mutants of this package"
    )
    parser.add_argument(
        "--limit",
        type=positive,
        default=900,
        metavar="SECONDS",
        help="for the tests of one mutant (default: %(default)s)",
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write what was found there")
    parser.add_argument("--list", action="store_true", help="print the mutants, and run nothing")
    add_common_options(parser)
    return parser


def _tests(root: Path) -> dict[str, list[str]]:
    """Returns the paths of the tests of each package, as the table's patterns name them."""
    table = load_table(root).get("packages", {})
    missing = sorted(source_files(root).keys() - table.keys())
    if missing:
        raise TableError(f"the table names no tests for {', '.join(missing)}")
    return {
        name: sorted(path.relative_to(root).as_posix() for p in patterns for path in root.glob(p))
        for name, patterns in table.items()
    }


def _main(options: argparse.Namespace) -> int:
    tests = _tests(options.root)
    mutants = draw_all(options.root, options)
    if options.list:
        for mutant in mutants:
            print(f"{mutant.file}  {mutant.operator}\n{mutant.change}\n")
        return 0
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        copies = Copies(options.root, Path(folder), min(options.jobs, len(mutants)))
        wanted = dict.fromkeys(path for m in mutants for path in tests[m.package])
        if not options.unchecked:
            check_unchanged(copies, list(wanted), options, _FAST)

        def test(mutant: RandomMutant) -> Verdict:
            with copies.changed(mutant.file, lambda _: mutant.text) as copy:
                return run_tests(
                    copy,
                    tests[mutant.package],
                    timeout_s=options.limit,
                    test_timeout_s=options.timeout,
                    marks=_FAST,
                )

        verdicts = run_each(mutants, test, lambda mutant: mutant.file, options.jobs)
    report(mutants, verdicts)
    if options.json is not None:
        entries = [{**asdict(m), **asdict(v)} for m, v in zip(mutants, verdicts, strict=True)]
        for entry in entries:
            del entry["text"]
        options.json.write_text(
            json.dumps({"seed": options.seed, "mutants": entries}, indent=1) + "\n",
            encoding="utf-8",
        )
    return 0


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
