"""Repair candidates: what the templates propose at suspicious lines, the likeliest first."""

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from coding_gym import syntax
from coding_gym.repair.sites import Proposal, Site, sites
from coding_gym.repair.source import Edit, FunctionNode, Source, apply_edits, first_line
from coding_gym.repair.templates import TEMPLATES, RepairTemplate

# To propose the candidates of one file, and to check them. A file of 100,000 characters takes 3
# seconds; one that is made to be slow ends here, with fewer candidates.
_MAX_CPU_S = 60.0


@dataclass(frozen=True, slots=True)
class Candidate:
    """One repair to try.

    Attributes:
        path: The file, relative to the workspace; of several, the first one's.
        line: First line of the statement that it changes.
        template: The template's name; of several, joined by ``+``.
        score: Suspiciousness times the template's prior times the proposal's weight.
        edits: The spans to replace, none overlapping another.
        description: What it does, one line.
        suspicion: Suspiciousness of the statement; of several, the highest.
        risk: How easily its template passes tests without being right.
    """

    path: str
    line: int
    template: str
    score: float
    edits: tuple[Edit, ...]
    description: str
    suspicion: float = 0.0
    risk: int = 0

    @property
    def size(self) -> int:
        """Characters taken out and put in."""
        return sum(e.end - e.start + len(e.replacement) for e in self.edits)


def candidates(path: str, source: Source | str, lines: Mapping[int, float]) -> Iterator[Candidate]:
    """Yields the repairs of one file, in falling order of score.

    Every candidate still parses, changes something, and differs from those before it. The order
    is the same in every process: equal scores are ordered by line, template and place.

    Args:
        path: The file, relative to the workspace.
        source: Its text, or the text already parsed.
        lines: Suspiciousness by line; lines that are missing are left alone.

    Raises:
        SyntaxError: The text is not valid Python.
    """
    parsed = Source(path, source) if isinstance(source, str) else source
    spent_s = 0.0
    seen = set()
    for _, candidate, site in sorted(_proposed(parsed, lines), key=lambda entry: entry[0]):
        start_s = time.thread_time()
        changed = _changed_unit(site, candidate.edits)
        spent_s += time.thread_time() - start_s
        if spent_s > _MAX_CPU_S:
            return
        if changed is not None and changed not in seen:
            seen.add(changed)
            yield candidate


_Order = tuple[float, int, int, tuple[Edit, ...]]


def _proposed(
    source: Source, lines: Mapping[int, float]
) -> Iterator[tuple[_Order, Candidate, Site]]:
    end_s = time.thread_time() + _MAX_CPU_S
    for site in sites(source):
        suspicion = max((lines.get(line, 0.0) for line in site.lines), default=0.0)
        if suspicion <= 0:
            continue
        for rank, template in enumerate(TEMPLATES):
            if time.thread_time() > end_s:
                return
            for proposal in template.propose(site):
                if time.thread_time() > end_s:
                    return
                candidate = _candidate(site, template, proposal, suspicion)
                yield (-candidate.score, candidate.line, rank, proposal.edits), candidate, site


def _candidate(
    site: Site, template: RepairTemplate, proposal: Proposal, suspicion: float
) -> Candidate:
    score = suspicion * template.prior * proposal.weight
    return Candidate(
        site.source.path,
        site.statement.lineno,
        template.name,
        round(score, 9),
        proposal.edits,
        proposal.description,
        suspicion,
        template.risk,
    )


def _changed_unit(site: Site, edits: tuple[Edit, ...]) -> tuple[int, str] | None:
    """Returns the smallest unit around the edits as it would read, with its offset.

    The unit is the function where there is one, else the whole file; only it is parsed again,
    which keeps large files fast. None where it would not parse or does not change.
    """
    source, own = site.source, site.statement
    start, end, is_indented = 0, len(source.text), False
    unit = own if isinstance(own, FunctionNode) else site.function
    if unit is not None:
        start, end = source.line_span(first_line(unit), unit.end_lineno or unit.lineno)
        is_indented = unit.col_offset > 0
    shifted = [Edit(e.path, e.start - start, e.end - start, e.replacement) for e in edits]
    text = source.text[start:end]
    changed = apply_edits(text, shifted)
    header = "if 1:\n" if is_indented else ""
    try:
        syntax.parse(header + changed)
    except (SyntaxError, ValueError):
        return None
    return (start, changed) if changed != text else None
