"""Menus of repair actions: available actions, features, and the effects of actions."""

from collections.abc import Sequence

import numpy as np
import pytest

from coding_gym.calls import ToolCall
from coding_gym.mutation.source import Source
from coding_gym.repair.localisation import Baseline, Localisation
from coding_gym.repair.menu import FIRST_CANDIDATE, RUN_TESTS, SUBMIT, Menu
from coding_gym.repair.menu_features import CANDIDATE_FEATURES, MENU_FEATURES
from coding_gym.repair.program import CandidateProgram, Shortlist
from coding_gym.repair.search import Trial
from coding_gym.repair.spectrum import Spectrum, ochiai, statement_scores

TEXT = "def at_most(x, limit):\n    return x < limit\n\n\ndef area(a, b):\n    return a - b\n"
NUM_SLOTS = 5


def shortlist(num_slots: int = NUM_SLOTS) -> Shortlist:
    sources = {"m.py": Source("m.py", TEXT)}
    spectrum = Spectrum(2, 3, {("m.py", 2): (2, 1), ("m.py", 6): (1, 3)})
    scores = statement_scores(sources, ochiai(spectrum))
    failing = ("test_m.py::test_a", "test_m.py::test_b")
    localisation = Localisation(Baseline(failing), spectrum, sources, scores)
    return Shortlist.of(localisation, num_slots)


class Program(CandidateProgram):
    """A program with two failing tests; ``fixed`` has the number that each candidate fixes."""

    def __init__(self, fixed: Sequence[int] = (), candidates: Shortlist | None = None) -> None:
        self.fixed = [*fixed, *(NUM_SLOTS - len(fixed)) * [0]]
        self.candidates = shortlist() if candidates is None else candidates

    def shortlist(self) -> Shortlist:
        return self.candidates

    def trial(self, shortlist: Shortlist, number: int) -> Trial:
        assert shortlist is self.candidates
        num_fixed = self.fixed[number]
        return Trial(min(num_fixed / 2, 1.0), num_fixed > 2)


@pytest.fixture
def menu() -> Menu:
    """A menu at the start of an episode."""
    return Menu(Program([1, 2]), NUM_SLOTS)


def act(menu: Menu, action: int, reply: str | None = None) -> ToolCall:
    """Plays an action; the reply is the text that its command echoes last, or ``reply``."""
    (call,) = menu.calls(action)
    menu.note([call.arguments["cmd"].rpartition("echo ")[2] if reply is None else reply])
    return call


def candidate_feature(menu: Menu, name: str) -> list[float]:
    return [float(v) for v in menu.candidate_features()[:, CANDIDATE_FEATURES.index(name)]]


def feature(menu: Menu, name: str) -> float:
    return float(menu.features(1.0)[MENU_FEATURES.index(name)])


def allowed(menu: Menu) -> list[int]:
    return [int(action) for action in np.flatnonzero(menu.mask())]


def test_all_actions_are_available_at_the_start(menu: Menu) -> None:
    assert allowed(menu) == [RUN_TESTS, SUBMIT, *range(2, 2 + NUM_SLOTS)]
    assert candidate_feature(menu, "exists") == [1.0] * NUM_SLOTS


def test_tests_run_only_when_the_tree_changed(menu: Menu) -> None:
    act(menu, RUN_TESTS)
    assert RUN_TESTS not in allowed(menu)
    act(menu, FIRST_CANDIDATE)
    assert RUN_TESTS in allowed(menu)
    assert feature(menu, "tests_current") == 0.0


def test_a_candidate_that_failed_is_not_offered_again(menu: Menu) -> None:
    act(menu, FIRST_CANDIDATE)
    act(menu, RUN_TESTS)
    act(menu, FIRST_CANDIDATE + 1)
    act(menu, RUN_TESTS)
    act(menu, FIRST_CANDIDATE + 2)
    assert [action for action in allowed(menu) if action >= FIRST_CANDIDATE] == [3, 5, 6]
    assert candidate_feature(menu, "fraction_fixed")[:2] == [0.5, 1.0]
    assert candidate_feature(menu, "passed_all")[:2] == [0.0, 1.0]
    assert (feature(menu, "best_fraction_fixed"), feature(menu, "fraction_fixed")) == (1.0, 0.0)


def test_unavailable_action_only_prints_a_message(menu: Menu) -> None:
    act(menu, FIRST_CANDIDATE)
    before = menu.candidate_features(), menu.features(0.5), menu.mask()
    call = act(menu, FIRST_CANDIDATE)
    assert (call.name, call.arguments["cmd"][:5]) == ("shell", "echo ")
    after = menu.candidate_features(), menu.features(0.5), menu.mask()
    assert all(np.array_equal(a, b) for a, b in zip(before, after, strict=True))


def test_tests_restore_the_tree_after_a_failed_patch(menu: Menu) -> None:
    act(menu, FIRST_CANDIDATE + 1, "error: patch failed")
    assert feature(menu, "changed") == 1.0
    assert candidate_feature(menu, "in_place") == [0.0] * NUM_SLOTS
    assert act(menu, RUN_TESTS).arguments["cmd"].startswith("git checkout ")
    assert (feature(menu, "changed"), feature(menu, "passed_all")) == (0.0, 0.0)
    act(menu, FIRST_CANDIDATE + 1)
    assert candidate_feature(menu, "in_place")[1] == 1.0


def test_features_stay_between_0_and_1_for_all_actions() -> None:
    rng = np.random.default_rng(0)
    replies = ["candidate 1 is in place", "candidate 3 is in place", "", "Command timed out"]
    for _ in range(20):
        menu = Menu(Program([int(n) for n in rng.integers(4, size=NUM_SLOTS)]), NUM_SLOTS)
        for _ in range(15):
            action = int(rng.integers(FIRST_CANDIDATE + NUM_SLOTS))
            menu.note([str(rng.choice(replies)) for _ in menu.calls(action)])
            for values in (menu.candidate_features(), menu.features(rng.random())):
                assert values.dtype == np.float32
                assert values.min() >= 0.0
                assert values.max() <= 1.0
            assert menu.mask()[SUBMIT]


HEALTHY = Localisation(Baseline(()), Spectrum(0, 3, {}), {}, {})


@pytest.mark.parametrize("localisation", [None, HEALTHY], ids=["tests cannot run", "no test fails"])
def test_other_actions_remain_without_candidates(localisation: Localisation | None) -> None:
    menu = Menu(Program(candidates=Shortlist.of(localisation, NUM_SLOTS)), NUM_SLOTS)
    assert allowed(menu) == [RUN_TESTS, SUBMIT]
