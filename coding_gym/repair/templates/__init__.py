"""The repair templates, one family per file; `docs/repair-templates.md` is the list.

The edits are those that studies of template-based repair found in real fixes: PAR (Kim et al.,
"Automatic patch generation learned from human-written patches", ICSE 2013), TBar (Liu et al.,
"TBar: revisiting template-based automated program repair", ISSTA 2019), GenProg's statement
edits (Le Goues et al., TSE 2012) and the usual operators of mutation testing.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from coding_gym.repair.sites import Proposal, Site
from coding_gym.repair.templates.calls import argument, call_result, method
from coding_gym.repair.templates.constants import constant, off_by_one
from coding_gym.repair.templates.exceptions import exception
from coding_gym.repair.templates.functions import copy, default
from coding_gym.repair.templates.guards import guard
from coding_gym.repair.templates.keywords import keyword
from coding_gym.repair.templates.names import variable
from coding_gym.repair.templates.operators import arithmetic, boolean, compare
from coding_gym.repair.templates.statements import statement
from coding_gym.repair.templates.wrapping import wrap


@dataclass(frozen=True, slots=True)
class RepairTemplate:
    """One kind of edit.

    Attributes:
        name: As in the list.
        prior: How likely it is to be the repair where it applies, from 0 to 1.
        risk: How easily it passes tests without being right; smaller is chosen first.
        propose: Yields its edits of one statement.
    """

    name: str
    prior: float
    risk: int
    propose: Callable[[Site], Iterator[Proposal]]


# Priors are common sense: edits of one token that real fixes are
# full of come first, those with many alternatives per statement last. Risk follows Qi et al.
# (ISSTA 2015): what deletes or skips behaviour passes weak tests most easily.
TEMPLATES: tuple[RepairTemplate, ...] = (
    RepairTemplate("compare", 0.9, 0, compare),
    RepairTemplate("default", 0.9, 0, default),
    RepairTemplate("off_by_one", 0.85, 0, off_by_one),
    RepairTemplate("call_result", 0.8, 0, call_result),
    RepairTemplate("boolean", 0.75, 1, boolean),
    RepairTemplate("method", 0.75, 0, method),
    RepairTemplate("keyword", 0.7, 0, keyword),
    RepairTemplate("argument", 0.7, 0, argument),
    RepairTemplate("arithmetic", 0.7, 0, arithmetic),
    RepairTemplate("constant", 0.7, 1, constant),
    RepairTemplate("exception", 0.7, 1, exception),
    RepairTemplate("copy", 0.6, 0, copy),
    RepairTemplate("variable", 0.6, 1, variable),
    RepairTemplate("guard", 0.55, 2, guard),
    RepairTemplate("wrap", 0.5, 1, wrap),
    RepairTemplate("statement", 0.5, 3, statement),
)

__all__ = ["TEMPLATES", "RepairTemplate"]
