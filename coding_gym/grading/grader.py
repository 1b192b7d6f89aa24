"""The verdict on a patch: hidden tests in a second, clean sandbox."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from random import Random, SystemRandom
from time import perf_counter

from coding_gym.arguments import MAX_SECONDS, unknown_name
from coding_gym.errors import (
    GradingError,
    InvalidArgumentError,
    PatchError,
    SandboxError,
    SandboxUnavailableError,
    UnknownNameError,
)
from coding_gym.grade import Grade, GradeReason, Level, TestStatus
from coding_gym.grading.challenge import (
    MIN_COINS,
    Suite,
    Unit,
    draw,
    judge_round,
    num_coins,
)
from coding_gym.grading.negation import Negation
from coding_gym.grading.plan import Plan, make_plan, plan_key, read_plan, shared_plan, stored_plan
from coding_gym.grading.runners import get_runner
from coding_gym.grading.runners.protocol import Negatable
from coding_gym.grading.tree import Run, TestTree, turns
from coding_gym.grading.verdict import judge
from coding_gym.patch import Patch
from coding_gym.task import Task
from coding_gym.workspace import Template

CHALLENGES = ("resolved", "passed")
"""The patches that are challenged: those with which all tests pass, or any of the bug's."""

_GOLD_FACTOR = 10.0
_UNSTEADY = "it passed in one run, and not in another that asked the same"
_CHANGED = "the patch changes the test itself"


def grade(
    task: Task,
    template: Template,
    patch: Patch,
    *,
    backend: str = "auto",
    challenge: str = "passed",
    rng: Random | None = None,
) -> Grade:
    """Returns what a patch is worth.

    Every expected test must be reported as passed, by name, in a fresh sandbox that holds the base
    tree, the hidden tests and the patch. Changes of tests and of their configuration are left out
    of the patch and reported. A patch that changes nothing, or nothing else, is not run. What
    counts is what git makes of the text, without new files that the base's ``.gitignore`` names.

    At most four patches for each core are graded at a time; further threads wait.

    A run may take the task's ``grading_timeout_s``, or ten times its ``gold_duration_s`` where that
    is more. One that takes longer is repeated only if it hardly got any CPU time.

    Code under test shares a process with the tests and can forge what that process reports. So a
    patch that seems to repair anything is challenged: two more runs at the same time, in which each
    unit of tests is negated in exactly one, drawn in secret. There it must fail, and in the other
    it must pass. ``docs/threat-model.md`` says what remains.

    Args:
        task: The task.
        template: Its template.
        patch: The change to grade, against the base tree.
        backend: Name of the sandbox backend.
        challenge: ``"resolved"`` challenges only patches with which all expected tests pass, which
            is enough where nothing else earns anything; ``"passed"`` all with which a test of the
            bug passes.
        rng: Source of the grader's draws: which tests are negated in which run, and the values that
            they ask for. The default is a new `random.SystemRandom`, which code under test cannot
            predict. A seeded `random.Random` makes a test of the grader repeatable; never use one
            where a policy is rewarded.

    Raises:
        GradingError: The machinery failed, or the task cannot be graded.
        SandboxUnavailableError: This machine cannot run the backend.
        UnknownNameError: There is no such challenge.
    """
    if challenge not in CHALLENGES:
        raise unknown_name("challenge", challenge, CHALLENGES)
    tree = _tree(task, template, backend)
    try:
        with turns.grade:
            start = perf_counter()
            verdict = _graded(task, template, tree, patch, challenge, rng or SystemRandom())
    except SandboxUnavailableError:
        raise
    except SandboxError as error:
        raise GradingError(f"the grading sandbox of {task.task_id} failed: {error}") from error
    except InvalidArgumentError as error:  # a text of the task that no sandbox can take
        raise GradingError(f"task {task.task_id} cannot be graded: {error}") from error
    is_verified = bool(verdict.is_verified)
    return replace(verdict, is_verified=is_verified, duration_s=perf_counter() - start)


def new_plan(task: Task, template: Template, *, backend: str = "auto") -> Plan:
    """Returns the plan of a task, which the first `grade` of a repair makes otherwise.

    It is made by runs with the gold patch, of this task or of another bug of the same program.

    Raises:
        GradingError: The task cannot be graded.
        SandboxError: The machinery failed.
    """
    return _new_plan(task, template, _tree(task, template, backend))


def repaired_tree(task: Task, template: Template, *, backend: str = "auto") -> str:
    """Returns a name of the tree that the gold patch and the hidden tests make of a task's base.

    All bugs of one project have the same name, so that one grade of a gold patch holds for all.

    Returns:
        The name; "" where the tree cannot be named: the patches share a file, or the environment
        is not known by its content.

    Raises:
        GradingError: The task cannot be graded.
        PatchError: The gold patch cannot be read or does not apply.
        SandboxError: The machinery failed.
    """
    if not template.environment_key:
        return ""
    tree = _tree(task, template, backend)
    gold = tree.select(Patch(task.gold_patch)).patch
    return "" if gold.is_empty else tree.name(gold)


def _tree(task: Task, template: Template, backend: str) -> TestTree:
    _check(task)
    timeout_s = max(task.grading_timeout_s, _GOLD_FACTOR * task.gold_duration_s)
    timeout_s = min(timeout_s, MAX_SECONDS / 2)  # the sandbox waits a little longer than that
    return TestTree(task, template, backend, timeout_s)


def _check(task: Task) -> None:
    if not task.expected_tests:
        raise GradingError(f"task {task.task_id} names no test that must pass")
    try:
        problem = get_runner(task.runner).problem(task)
    except UnknownNameError as error:
        problem = str(error)
    if problem:
        raise GradingError(f"task {task.task_id}: {problem}")


def _graded(
    task: Task,
    template: Template,
    tree: TestTree,
    patch: Patch,
    challenge: str,
    rng: Random,
) -> Grade:
    """Returns the grade, but for its duration."""
    dropped: tuple[str, ...] = ()
    try:
        selection = tree.select(patch)
        dropped = selection.dropped_paths
        if selection.patch.is_empty:
            said = "nothing but tests or their configuration was changed"
            return _refusal(
                GradeReason.EMPTY_PATCH, said if dropped else "nothing was changed", dropped
            )
        first = tree.run(selection.patch, {})
    except PatchError as error:
        return _refusal(GradeReason.PATCH_NOT_APPLIED, str(error), dropped)
    verdict = judge(task, first)
    claimed = task.fail_to_pass or task.pass_to_pass
    has_repaired = any(first.status(test) is TestStatus.PASSED for test in claimed)
    if first.has_ended and not first.forgery and has_repaired:
        plan = stored_plan(task, template, lambda: _new_plan(task, template, tree))
        verdict = _Challenge(task, tree, selection.patch, first, plan, rng).verdict(challenge)
    return replace(verdict, dropped_paths=dropped)


def _refusal(reason: GradeReason, detail: str, dropped: tuple[str, ...]) -> Grade:
    return Grade(resolved=False, reason=reason, detail=detail, dropped_paths=dropped)


def _new_plan(task: Task, template: Template, tree: TestTree) -> Plan:
    """Returns a task's plan by runs with the gold patch; without one, by the source alone."""
    try:
        gold = tree.select(Patch(task.gold_patch)).patch
        if gold.is_empty:
            return Plan()
        make = partial(_made_plan, tree, gold)
        name = tree.name(gold) if template.environment_key else ""
        if name:
            return shared_plan(task, template, name, make)
        return make(task, Random(plan_key(task, template)))[0]  # noqa: S311 - no secret
    except PatchError:
        return Plan()


def _made_plan(tree: TestTree, gold: Patch, task: Task, draws: Random) -> tuple[Plan, bool]:
    """Returns a plan, and whether the tests pass and all runs for it ended."""
    first = tree.run(gold, {})
    if not first.has_ended:
        return Plan(), False
    runs: list[Run] = []

    def run_all(changes: Sequence[Mapping[str, bytes]], *, is_plain: bool) -> Sequence[Run]:
        found = tree.run_all(gold, changes, like=first, is_plain=is_plain)
        runs.extend(found)
        return found

    plan = make_plan(task, _suite(task, first), first, run_all, draws)
    return plan, plan.is_calibrated and all(run.has_ended for run in runs)


def _suite(task: Task, run: Run) -> Suite:
    """The test files of a run, and where the expected tests are in them."""
    runner = get_runner(task.runner)
    functions = runner.functions(task, run.files) if isinstance(runner, Negatable) else {}
    return Suite(run.files, functions, renames=task.runner == "pytest")


@dataclass(slots=True)
class _Challenge:
    """The challenge of one patch.

    Attributes:
        negations: Those of the plan that still fit the tests.
        passed: Tests that count as passed, although the first run does not report them so.
        failed: Tests that count as failed, although the first run reports them passed, by name
            with the reason.
    """

    task: Task
    tree: TestTree
    patch: Patch
    first: Run
    plan: Plan
    rng: Random
    negations: dict[str, Negation] = field(default_factory=dict)
    passed: set[str] = field(default_factory=set)
    failed: dict[str, str] = field(default_factory=dict)

    def verdict(self, challenge: str) -> Grade:
        """Returns the grade after a round for all tests, and further ones for those of the bug."""
        suite = _suite(self.task, self.first)
        if not self.plan.is_calibrated:
            self.plan = read_plan(self.task, suite)
        plan = self.plan
        kept = tuple(t for t in self.task.pass_to_pass if t not in plan.excluded)
        task = self.task = replace(self.task, pass_to_pass=kept)
        self._refuse_changed(suite)
        self._add_passed(suite, self.first, frozenset())
        claimed = [test for test in task.expected_tests if self._may_pass(test)]
        if challenge == "resolved" and len(claimed) < len(task.expected_tests):
            return self._finished(self.first, is_verified=False)
        tests = {
            test: suite.locations[test]
            for test in claimed
            if plan.level(test) is not Level.STRUCTURE and test not in plan.unstable
        }
        bug = {test: tests[test] for test in task.fail_to_pass if test in tests}
        coins = num_coins(plan.units, bug.values())
        answer = self._round(suite, tests, plan.units)
        won = coins
        near = [unit for unit in plan.units if any(unit & own for own in bug.values())]
        only = {location.partition("::")[0] for unit in near for location in unit}
        while answer is None and coins and won < MIN_COINS:
            if not all(map(self._may_pass, task.expected_tests)):
                break
            answer = self._round(suite, bug, near, only)
            won += coins
        return answer or self._finished(self.first, is_verified=True)

    def _may_pass(self, test: str) -> bool:
        """Whether a test passed in all runs so far, or may pass in the next where that suffices."""
        if test in self.failed:
            return False
        has_passed = self.first.status(test) is TestStatus.PASSED or test in self.passed
        return has_passed or test in self.plan.unstable

    def _add_passed(self, suite: Suite, run: Run, negated: Unit) -> None:
        """Records unstable tests that passed in a run, and expected failures that failed."""
        for test in self.plan.unstable:
            is_plain = suite.locations.get(test, negated).isdisjoint(negated)
            if is_plain and run.status(test) is TestStatus.PASSED:
                self.passed.add(test)
        if run is self.first:
            xfailed = (t for t in self.plan.xfailing if run.status(t) is TestStatus.XFAILED)
            self.passed.update(xfailed)

    def _refuse_changed(self, suite: Suite) -> None:
        """Fails tests that the patch itself changes, in files that the gold patch changes too."""
        shared = Patch(self.task.gold_patch).paths
        for location, negation in self.plan.negations.items():
            is_shared = location.partition("::")[0] in shared  # its layout, too, may be another
            is_usable = not is_shared or negation.number in suite.usable(location)
            if suite.digest(location) == negation.digest and is_usable:
                self.negations[location] = negation
        changed = self.plan.negations.keys() - self.negations.keys()
        self.failed |= {t: _CHANGED for t, own in suite.locations.items() if own & changed}

    def _round(
        self,
        suite: Suite,
        tests: Mapping[str, Unit],
        units: Sequence[Unit],
        only: Collection[str] = (),
    ) -> Grade | None:
        """Makes the two runs of a round; returns a grade if they decide it, else None."""
        if not tests:
            return None
        drawn = draw(units, self.rng)
        files = [suite.rewritten(self.negations, one, self.rng) for one in drawn]
        runs = self.tree.run_all(
            self.patch,
            files,
            like=self.first,
            only=only,
            is_plain=self.plan.is_plain,
            together=self.plan.is_paired,
        )
        for run, negated in zip(runs, drawn, strict=True):
            if run.forgery or not run.has_ended:
                return self._finished(run, is_verified=True)
            self._add_passed(suite, run, negated)
        answers = judge_round(tests, drawn, (runs[0].status, runs[1].status))
        if answers.forged:
            said = f"a negated test passed, so results are forged: {answers.forged[0]}"
            grade = self._finished(self.first, is_verified=True)
            return replace(grade, resolved=False, reason=GradeReason.TAMPERED, detail=said)
        self.failed |= dict.fromkeys(answers.failed, _UNSTEADY)
        return None

    def _finished(self, run: Run, *, is_verified: bool) -> Grade:
        verdict = judge(self.task, run, failed=self.failed, passed=self.passed)
        return replace(
            verdict,
            levels=self.plan.counts(self.task.fail_to_pass),
            is_verified=is_verified,
            is_calibrated=self.plan.is_calibrated,
            plan=self.plan.digest,
        )
