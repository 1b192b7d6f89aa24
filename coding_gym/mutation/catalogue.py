"""All operators; each change can be a bug, a repair candidate, or both.

The repairs are templates that studies of template-based repair found in real fixes: PAR (Kim et
al., "Automatic patch generation learned from human-written patches", ICSE 2013), TBar (Liu et al.,
"TBar: revisiting template-based automated program repair", ISSTA 2019), GenProg's statement edits
(Le Goues et al., TSE 2012) and the usual operators of mutation testing.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from coding_gym.mutation.calls import argument, keyword, method
from coding_gym.mutation.conditions import boolean, compare
from coding_gym.mutation.exceptions import exception
from coding_gym.mutation.literals import constant, default
from coding_gym.mutation.names import variable
from coding_gym.mutation.numbers import arithmetic, off_by_one
from coding_gym.mutation.sites import Change, Site
from coding_gym.mutation.statements import return_early, shorten_loop, statement
from coding_gym.mutation.wrapping import copy, order

BUG_KINDS: tuple[str, ...] = (
    "comparison",
    "boundary",
    "boolean",
    "branch",
    "arithmetic",
    "constant",
    "default",
    "slice",
    "argument_order",
    "missing_argument",
    "alias",
    "wrong_variable",
    "wrong_attribute",
    "removed_guard",
    "removed_statement",
    "early_return",
    "exception_class",
    "loop",
    "wrong_method",
)
"""The kinds of bugs that the operators make; see `docs/synthesis.md`."""


@dataclass(frozen=True, slots=True)
class Operator:
    """An operator: it proposes changes of statements.

    Attributes:
        name: The name of the repair template, a value of `Candidate.template`.
        prior: Estimated probability, from 0 to 1, that one of the operator's changes of a faulty
            statement is the repair.
        risk: A rank from 0. Wrong changes of operators with a higher rank pass tests more often;
            the search prefers low ranks.
        changes: A function that yields the operator's changes of one statement.
    """

    name: str
    prior: float
    risk: int
    changes: Callable[[Site], Iterator[Change]]


# Priors are estimates of the authors: one-token edits, common in real fixes, rank first; operators
# with many alternatives per statement rank last. Risk follows Qi et al. (ISSTA 2015): edits that
# delete or skip behaviour pass weak tests most easily.
TEMPLATES: tuple[Operator, ...] = (
    Operator("compare", 0.9, 0, compare),
    Operator("default", 0.9, 0, default),
    Operator("off_by_one", 0.85, 0, off_by_one),
    Operator("boolean", 0.75, 1, boolean),
    Operator("method", 0.75, 0, method),
    Operator("keyword", 0.7, 0, keyword),
    Operator("argument", 0.7, 0, argument),
    Operator("arithmetic", 0.7, 0, arithmetic),
    Operator("constant", 0.7, 1, constant),
    Operator("exception", 0.7, 1, exception),
    Operator("copy", 0.6, 0, copy),
    Operator("variable", 0.6, 1, variable),
    Operator("order", 0.5, 1, order),
    Operator("statement", 0.5, 3, statement),
)
"""The operators of the repair search."""

_ONLY_BUGS = (return_early, shorten_loop)


def bugs(site: Site) -> Iterator[Change]:
    """Yields the changes of a statement that make a bug."""
    for changes in (*(operator.changes for operator in TEMPLATES), *_ONLY_BUGS):
        for change in changes(site):
            if change.bug and site.source.is_changed_by(change.edits):
                yield change
