"""The program under test can write anything in the driver's place; the host must survive it."""

import base64
import itertools
import json
import time
import zlib
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from coding_gym.calls import ExecResult
from coding_gym.mutation.source import Source
from coding_gym.repair import driver, shortlist
from coding_gym.repair.candidates import candidates
from coding_gym.repair.findings import Findings
from coding_gym.repair.localisation import Baseline, Localisation, localise
from coding_gym.repair.places import listing_command
from coding_gym.repair.probe import wire
from coding_gym.repair.search import Search
from coding_gym.repair.shortlist import Shortlist, find_shortlist
from coding_gym.repair.spectrum import Spectrum, ochiai, statement_scores
from coding_gym.repair.visible_tests import RunReport, VisibleTests
from coding_gym.sandbox.backend_checks import command_bytes

TEXT = "def area(a, b):\n    return a - b\n"
SURVEY: dict[str, Any] = {
    "failing": ["test_m.py::test_a"],
    "all_failing": ["test_m.py::test_a", "test_m.py::test_b"],
    "in_order": False,
    "flags": [],
    "num_tests": 5,
    "num_passed": 3,
    "num_failed": 2,
    "files": {"m.py": {"size": 34, "groups": {"1,1": [2]}}},
    "others": {},
}
FAILURE = RunReport(0.0, broken=True, passed=False)


def packed(raw: bytes) -> str:
    return base64.b85encode(zlib.compress(raw, 9)).decode()


def reply(value: Any) -> str:
    text = wire.pack(value)
    return wire.format_slice(text, 0, len(text))


def answered(talk: Any, *replies: str) -> Any:
    """What a talk gives in the end, where it asks for these replies and no more."""
    next(talk)
    for text in replies[:-1]:
        talk.send(text)
    with pytest.raises(StopIteration) as end:
        talk.send(replies[-1])
    return end.value.value


def found(survey: Any, texts: Any) -> Localisation | None:
    """Returns what `localise` makes of two replies."""
    localisation: Localisation | None = answered(
        localise(), "ready", reply(survey), reply({"texts": texts})
    )
    return localisation


@pytest.mark.parametrize(
    "text",
    [
        f"[0/{'9' * 5000}] abc",
        "[0/999999999] abc",
        wire.format_slice(packed(b"7"), 0, 99),
        wire.format_slice(packed(b'["error"]'), 0, 99),
        wire.format_slice(packed(b"[" * 100_000), 0, 9999),
        wire.format_slice(packed(b'{"a": ' + b"9" * 5000 + b"}"), 0, 9999),
        wire.format_slice(packed(b"\xff"), 0, 99),
        "command failed with exit code 1",
    ],
    ids=["digits", "endless", "number", "list", "depth", "integer", "no text", "no slice"],
)
def test_a_forged_reply_is_none(text: str) -> None:
    assert answered(driver.ask("survey", {}), text) is None


def test_a_small_reply_cannot_fill_the_memory() -> None:
    bomb = packed(b'"' + b"a" * (64 << 20) + b'"')
    assert len(bomb) < 100_000
    with pytest.raises(ValueError, match="too large"):
        wire.unpack(bomb)


@pytest.mark.parametrize("key", [*SURVEY])
def test_a_survey_of_the_wrong_form_breaks_nothing(key: str) -> None:
    values: list[Any] = [None, -1, 10**400, "x", ["\0"], [3], {"m.py": 3}, {"m.py": {}}]
    surveys = [SURVEY | {key: value} for value in values]
    for survey in [*surveys, {k: v for k, v in SURVEY.items() if k != key}]:
        localisation = found(survey, {"m.py": TEXT}) if Findings.from_reply(survey) else None
        features = Shortlist.of(localisation, 4).features
        assert ((features >= 0) & (features <= 1)).all(), survey[key]


def test_counts_that_cannot_be_are_refused() -> None:
    for counts in ("9,0", "1,-1", "0,1", "1,4", "1", "a,b", f"1,{'9' * 5000}"):
        survey = SURVEY | {"files": {"m.py": {"size": 1, "groups": {counts: [2]}}}}
        assert Findings.from_reply(survey) is None, counts


def test_more_tests_to_repair_than_the_survey_gives_are_refused() -> None:
    for ids in ([f"t{i}" for i in range(13)], ["t" * 60_000]):
        assert Findings.from_reply(SURVEY | {"failing": ids}) is None


def test_long_ids_still_fit_a_command() -> None:
    ids = [*SURVEY["failing"], *(f"test_m.py::test_b[{'é' * 5000}{i}]" for i in range(199))]
    read = Findings.from_reply(SURVEY | {"all_failing": ids})
    assert read is not None
    baseline = Baseline(read.failing, read.known_failing)
    assert len(VisibleTests("-q", baseline).install_command()) < 1_000_000


@pytest.mark.parametrize(
    "texts", [None, 3, {"m.py": 3}, {"m.py": "\ud800"}, {"m.py": "a" * 500_000}]
)
def test_texts_that_are_none_give_no_candidates(texts: Any) -> None:
    localisation = found(SURVEY, texts)
    assert localisation is not None
    assert not list(localisation.candidates())


CHAIN = "".join(f"    elif x == {i}:\n        y = {i}\n" for i in range(700))


@pytest.mark.parametrize(
    "text",
    [
        f"def area(x):\n    if x:\n        y = 1\n{CHAIN}",
        f"def area(x):\n    return {'+'.join(['x'] * 900)}\n",
        f"def area(x):\n    return {'-' * 50_000}x\n",
        f"def area(x):\n    return x{'.a' * 20_000}\n",
    ],
    ids=["elif", "sum", "minus", "attributes"],
)
def test_a_tree_that_is_too_deep_is_left_out(text: str) -> None:
    survey = SURVEY | {"files": SURVEY["files"] | {"deep.py": {"size": 1, "groups": {"1,0": [2]}}}}
    localisation = found(survey, {"m.py": TEXT, "deep.py": text})
    assert localisation is not None
    assert {candidate.path for candidate in localisation.candidates()} == {"m.py"}


def test_a_file_made_to_be_slow_ends_with_fewer_candidates(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter(range(10**9))
    monkeypatch.setattr(time, "thread_time", lambda: float(next(clock)))
    lines = "".join(f"    x{i} = x{i} + {i}\n" for i in range(300))
    text = f"def area():\n{lines}"
    few = len(list(candidates("m.py", text, dict.fromkeys(range(2, 302), 1.0))))
    monkeypatch.undo()
    assert 0 < few <= 60


def test_names_beyond_reason_are_not_compared() -> None:
    names = [chr(0x4E00 + i) * 1500 for i in range(2)]
    text = f"def area({', '.join(names)}):\n    return {names[0]}\n"
    found = [c.template for c in candidates("m.py", text, {2: 1.0})]
    assert "variable" not in found


def test_scores_that_round_to_nothing_are_no_division_by_it() -> None:
    sources = {"m.py": Source("m.py", TEXT)}
    spectrum = Spectrum(1, 10**20, {("m.py", 2): (1, 10**20)})
    scores = statement_scores(sources, ochiai(spectrum))
    localisation = Localisation(Baseline(("t",), ("t",)), spectrum, sources, scores)
    features = Shortlist.of(localisation, 4).features
    assert np.isfinite(features).all()


def test_names_that_are_no_utf_8_can_be_listed() -> None:
    baseline = Baseline(("test_\udcff.py::test_a",), ("test_\udcff.py::test_a",))
    command = listing_command(Localisation(baseline, Spectrum(1, 0, {}), {}, {}))
    assert "test_\\udcff.py" in command
    (command + VisibleTests("-q", baseline).install_command()).encode()


def test_a_summary_that_cannot_be_is_a_failure() -> None:
    cases = [
        "failed before: 0 of 0 pass now; others broken: 0",
        "failed before: 1 of 0 pass now; others broken: 0",
        "failed before: 3 of 2 pass now; others broken: 0",
        "failed before: 1 of 1 pass now; others broken: 0",
        f"failed before: {'9' * 100} of 1 pass now; others broken: 0",
        f"failed before: {'9' * 1900} of 2 pass now; others broken: 0",
        f"failed before: 2 of 2 pass now; others broken: {'0' * 1900}",
    ]
    for line in cases:
        tests = VisibleTests("-q", Baseline(("a", "b"), ("a", "b")))
        assert tests.read(f"{line}\nexit code 0") == FAILURE, line


@pytest.mark.parametrize(
    "answer",
    [
        {},
        {"codes": 3, "fixed": {}},
        {"codes": "!!", "fixed": {}},
        {"codes": "!", "fixed": []},
        {"codes": "!", "fixed": {"0": [[]]}},
        {"codes": "!", "fixed": {"0": 3}},
    ],
)
def test_a_forged_verdict_finds_no_repair(answer: Any) -> None:
    localisation = found(SURVEY, {"m.py": TEXT})
    assert localisation is not None
    search = Search(localisation.sources, 1, 1.0, 1)
    assert answered(search.run(localisation.candidates(), 1, 1), reply(answer)) is None


def sandbox(answer: Callable[[str], str]) -> Any:
    """Answers every command."""

    def run(command: str, *, timeout_s: float) -> ExecResult:
        assert timeout_s > 0
        return ExecResult(exit_code=0, output=answer(command))

    return SimpleNamespace(run=run)


def test_a_reply_in_ever_more_slices_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = itertools.count()
    monkeypatch.setattr(shortlist.time, "monotonic", lambda: float(next(clock)))
    commands: list[str] = []

    def answer(command: str) -> str:
        commands.append(command)
        start = command.rpartition("more ")[2]
        return f"[{start if start.isdigit() else 0}/4000000] a"

    assert find_shortlist(sandbox(answer), "-q", 4).candidates == ()
    assert len(commands) < 500


def test_a_name_too_long_for_a_command_is_no_crash() -> None:
    def answer(command: str) -> str:
        command_bytes(command)
        survey = SURVEY | {"files": {}, "others": {json.dumps(i): 0 for i in range(9_000)}}
        return reply(survey if " survey " in command else {"texts": {}})

    for arguments in ("-q" + "a" * (2 << 20), "-q"):
        assert find_shortlist(sandbox(answer), arguments, 4).candidates == ()
