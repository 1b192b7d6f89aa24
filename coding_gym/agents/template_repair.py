"""An agent without a model: locates suspicious lines, tries classic edits, keeps what passes."""

import heapq
from collections.abc import Generator, Iterable, Mapping, Sequence
from itertools import islice
from typing import Any

from coding_gym.agents.actions import call, submit
from coding_gym.agents.protocol import Info, Play
from coding_gym.repair import driver
from coding_gym.repair.candidates import Candidate, candidates
from coding_gym.repair.pairs import Trial, pairs, simplest
from coding_gym.repair.patching import search_and_replace
from coding_gym.repair.probe.verdicts import BREAKS, CHANGED, PLAUSIBLE, SOME, UNTRIED
from coding_gym.repair.source import Source, apply_edits
from coding_gym.repair.spectrum import Spectrum, ochiai, statement_scores

_EXTRA = 60  # candidates still tried after the first one that passes
_TEST_S = 3.0  # for one test
_SUITE_S = 40.0  # for all of them, once
_MAX_SOURCE_CHARS = 120_000
_MAX_PAIRED = 40
_MAX_CHECKED = 3
_APPLIED = "patch applied successfully"
_TESTS = "PYTHONDONTWRITEBYTECODE=1 python -m pytest -p no:cacheprovider {} 2>&1 | tail -n 12"

_Steps = Generator[str, Info, Any]


class TemplateRepairAgent:
    """Repairs by search, through tool calls only; sees what any policy sees.

    It writes a small driver to /tmp, which runs the visible tests on a copy of the tree and reports
    what failed and which lines ran; ranks the lines by Ochiai; has the driver try the edits of the
    repair templates there, then pairs of edits; applies the best one that makes every visible test
    pass, runs the tests again, and submits. Where several edits pass it takes the simplest by
    a fixed rule (`simplest`). Where nothing makes all failing tests pass, an edit that makes some
    of them pass and breaks none will do. Where no visible test fails, or nothing is found,
    it submits the tree unchanged. Needs the toolset ``nano``.

    Args:
        max_candidates: Single edits to try.
        max_pairs: Pairs of edits to try after them.
        max_search_s: Seconds of trying, as a last resort: the counts should end the search first,
            so that it does not depend on the machine.
        batch_size: Candidates per tool call.
        test_arguments: Pytest's arguments for the visible tests.
    """

    name = "template-repair"

    def __init__(
        self,
        *,
        max_candidates: int = 1000,
        max_pairs: int = 250,
        max_search_s: float = 20.0,
        batch_size: int = 250,
        test_arguments: str = "-q",
    ) -> None:
        self._max_candidates = max_candidates
        self._max_pairs = max_pairs
        self._max_search_s = max_search_s
        self._batch_size = batch_size
        self._test_arguments = test_arguments

    def play(self, info: Info) -> Play:  # noqa: ARG002 - it reads the tests, not the report
        """Plays one episode of at most about 35 turns."""
        repair = yield from self._find()
        if repair is not None:
            candidate, sources = repair
            yield from _apply(candidate, sources)
            yield call("shell", cmd=_TESTS.format(self._test_arguments))
        yield submit()

    def _find(self) -> _Steps:
        yield call("shell", cmd=driver.install_command())
        request = {"arguments": self._test_arguments, "seconds": _SUITE_S, "test_s": _TEST_S}
        survey = yield from _ask("survey", request)
        if survey is None or not survey["failing"]:
            return None
        sources = yield from _read_sources(survey)
        search = _Search(sources, self._max_search_s, self._batch_size)
        chosen = yield from search.run(
            _all_candidates(survey, sources), self._max_candidates, self._max_pairs
        )
        return None if chosen is None else (chosen, sources)


class _Search:
    """Tries candidates batch by batch and remembers what came of them."""

    def __init__(self, sources: Mapping[str, Source], seconds: float, batch_size: int) -> None:
        self._sources = sources
        self._seconds = seconds
        self._batch_size = batch_size
        self._trials: list[Trial] = []

    def run(self, singles: Iterable[Candidate], max_singles: int, max_pairs: int) -> _Steps:
        """Returns the candidate to apply, or None."""
        yield from self._try_all(islice(singles, max_singles))
        if not self._ended(PLAUSIBLE):
            promising = self._ended(SOME, BREAKS) + self._ended(CHANGED)
            yield from self._try_all(islice(pairs(promising[:_MAX_PAIRED]), max_pairs))
        chosen = yield from self._checked(simplest(self._ended(PLAUSIBLE)), PLAUSIBLE)
        if chosen is None:
            partial = sorted(self._ended(SOME), key=lambda trial: -len(trial.fixed))
            chosen = yield from self._checked([t.candidate for t in partial], SOME)
        return chosen

    def _ended(self, *codes: str) -> list[Trial]:
        return [trial for trial in self._trials if trial.code in codes]

    def _try_all(self, found: Iterable[Candidate]) -> _Steps:
        remaining = iter(found)
        while batch := list(islice(remaining, self._batch_size)):
            reply = yield from self._try(batch, full=False)
            if reply is None:
                return
            for number, code in enumerate(reply["codes"]):
                fixed = frozenset(reply["fixed"].get(str(number), ()))
                self._trials.append(Trial(batch[number], code, fixed))
            if UNTRIED in reply["codes"] or PLAUSIBLE in reply["codes"]:
                return

    def _try(self, batch: Sequence[Candidate], *, full: bool) -> _Steps:
        request = driver.trial_request(
            batch, self._sources, seconds=self._seconds, extra=_EXTRA, full=full
        )
        return (yield from _ask("try", request))

    def _checked(self, found: Sequence[Candidate], code: str) -> _Steps:
        """Returns the first of the candidates that also holds in a fresh run of all tests."""
        for candidate in found[:_MAX_CHECKED]:
            reply = yield from self._try([candidate], full=True)
            if reply is not None and reply["codes"] == code:
                return candidate
        return None


def _ask(command: str, request: Mapping[str, Any]) -> _Steps:
    talk = driver.ask(command, request)
    output = next(talk)
    while True:
        info = yield call("shell", cmd=output)
        try:
            output = talk.send(info["text"])
        except StopIteration as end:
            return end.value


def _read_sources(survey: Mapping[str, Any]) -> _Steps:
    """Returns the files that failing tests ran, then others, as far as the limit allows."""
    sizes = {path: entry["size"] for path, entry in survey["files"].items()} | survey["others"]
    paths: list[str] = []
    total = 0
    for path, size in sizes.items():
        total += size
        if total <= _MAX_SOURCE_CHARS or not paths:
            paths.append(path)
    reply = yield from _ask("sources", {"paths": paths})
    sources = {}
    for path, text in (reply or {"texts": {}})["texts"].items():
        try:
            sources[path] = Source(path, text)
        except (SyntaxError, ValueError):
            continue  # what does not parse cannot be edited by its tree
    return sources


def _all_candidates(
    survey: Mapping[str, Any], sources: Mapping[str, Source]
) -> Iterable[Candidate]:
    hits = {}
    for path, entry in survey["files"].items():
        for counts, lines in entry["groups"].items():
            failed, passed = (int(part) for part in counts.split(","))
            hits.update({(path, line): (failed, passed) for line in lines})
    spectrum = Spectrum(len(survey["failing"]), survey["num_passed"], hits)
    scores = statement_scores(sources, ochiai(spectrum))
    by_file = [candidates(path, sources[path], scores[path]) for path in sorted(sources)]
    return heapq.merge(*by_file, key=lambda candidate: -candidate.score)


def _apply(candidate: Candidate, sources: Mapping[str, Source]) -> _Steps:
    """Makes a candidate's edits in the workspace, from the end of each file to its start."""
    texts = {path: source.text for path, source in sources.items()}
    waiting = sorted(candidate.edits, reverse=True)
    while waiting:
        edit = waiting[0]
        text = texts[edit.path]
        search, replace = search_and_replace(text, edit)
        info = yield call("apply_patch", search=search, replace=replace, file=edit.path)
        if _APPLIED not in info["text"]:
            edits = [[e.path, e.start, e.end, e.replacement] for e in waiting]
            yield from _ask("apply", {"edits": edits})
            return
        texts[edit.path] = apply_edits(text, [edit])
        waiting.pop(0)
