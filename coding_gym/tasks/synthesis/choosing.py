"""Which kinds of bugs are wanted, asked before any work is done for them."""

from collections.abc import Collection

from coding_gym.arguments import unknown_name
from coding_gym.tasks.synthesis.mutants import find_sites

COMBINATION = "combination"


def check_operators(operators: Collection[str]) -> tuple[str, ...]:
    """Returns the names of the operators to use; all of them where none are given.

    Args:
        operators: Names of `operators.OPERATOR_NAMES`, and ``combination``.

    Raises:
        UnknownNameError: No operator has one of the names.
        MissingDependencyError: libcst is not installed.
    """
    # Any name asks for libcst, whose absence is then told before any work is done.
    list(find_sites("", b"", lambda *_: False))
    from coding_gym.tasks.synthesis.operators import OPERATOR_NAMES

    known = (*OPERATOR_NAMES, COMBINATION)
    for name in operators:
        if name not in known:
            raise unknown_name("operator", name, known)
    return tuple(operators) or known
