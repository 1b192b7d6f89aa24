"""Repair candidates: changes of suspicious statements by templates, the most likely first."""

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import takewhile

from coding_gym.mutation.catalogue import TEMPLATES
from coding_gym.mutation.sites import Site, sites, unit_around
from coding_gym.mutation.source import Source
from coding_gym.patch import Patch
from coding_gym.source_text import Edit, apply_edits

# Maximum processor seconds to propose the candidates of one file, and again to parse them. A file
# of 100,000 characters takes 3 seconds; the limit protects against malicious files.
_MAX_CPU_S = 60.0


@dataclass(frozen=True, slots=True)
class Candidate:
    """One possible repair.

    Attributes:
        path: The file, relative to the workspace.
        line: First line of the changed statement.
        template: The name of the template.
        score: Suspiciousness times prior of the template times weight of the change.
        edits: The spans of the file to replace; they do not overlap.
        suspicion: Suspiciousness of the statement.
        risk: The `Operator.risk` of the template.
    """

    path: str
    line: int
    template: str
    score: float
    edits: tuple[Edit, ...]
    suspicion: float = 0.0
    risk: int = 0

    @property
    def size(self) -> int:
        """The number of removed and inserted characters."""
        return sum(e.end - e.start + len(e.replacement) for e in self.edits)

    def applied(self, text: str) -> str:
        """Returns the edited text of the file; ``text`` is the original."""
        return apply_edits(text, self.edits)

    def patch(self, text: str) -> Patch:
        """Returns the edits as a patch; ``text`` is the original text of the file."""
        return Patch.between({self.path: text}, {self.path: self.applied(text)})


def candidates(source: Source, lines: Mapping[int, float]) -> Iterator[Candidate]:
    """Yields the candidates of one file, in descending order of score.

    Every edited file parses, and differs from the original file and from earlier edited files. The
    order is reproducible: equal scores are sorted by line, template and edits.

    Args:
        source: The file.
        lines: Suspiciousness by line; lines without a value are not changed.
    """
    end_s = time.thread_time() + _MAX_CPU_S
    proposals = takewhile(lambda _: time.thread_time() < end_s, _proposals(source, lines))
    spent_s = 0.0
    seen_units = set()
    for _, candidate, site in sorted(proposals, key=lambda entry: entry[0]):
        start_s = time.thread_time()
        unit = unit_around(site, candidate.edits)
        spent_s += time.thread_time() - start_s
        if spent_s > _MAX_CPU_S:
            return
        if unit is not None and unit[:2] not in seen_units:
            seen_units.add(unit[:2])
            yield candidate


_Order = tuple[float, int, int, tuple[Edit, ...]]


def _proposals(
    source: Source, lines: Mapping[int, float]
) -> Iterator[tuple[_Order, Candidate, Site]]:
    for site in sites(source):
        suspicion = max((lines.get(line, 0.0) for line in site.lines), default=0.0)
        if suspicion <= 0:
            continue
        for rank, template in enumerate(TEMPLATES):
            for change in template.changes(site):
                if change.weight and source.is_changed_by(change.edits):
                    candidate = Candidate(
                        path=source.path,
                        line=site.line,
                        template=template.name,
                        score=round(suspicion * template.prior * change.weight, 9),
                        edits=change.edits,
                        suspicion=suspicion,
                        risk=template.risk,
                    )
                    yield (-candidate.score, candidate.line, rank, change.edits), candidate, site
