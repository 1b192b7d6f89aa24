"""Every formula has worked examples, and they hold."""

import doctest
import importlib
import inspect
import pkgutil

from coding_gym import rewards

_NO_FORMULAS = ("get_reward", "register_reward", "compare_files")
_NO_FORMULAS += ("matching_blocks", "shell_commands", "paths_in")
MODULES = [found.name for found in pkgutil.iter_modules(rewards.__path__)]


def test_the_examples_in_the_documentation_hold() -> None:
    for name in MODULES:
        module = importlib.import_module(f"coding_gym.rewards.{name}")
        assert doctest.testmod(module).failed == 0, name


def test_every_formula_has_examples_and_says_where_it_comes_from() -> None:
    modules = [rewards, rewards.coderepairrl, rewards.areno]
    formulas = {
        value
        for module in modules
        for name, value in vars(module).items()
        if inspect.isfunction(value) and value.__module__.startswith("coding_gym.")
        if not name.startswith("_") and name not in _NO_FORMULAS
    }
    assert len(formulas) > 20
    finder = doctest.DocTestFinder(recurse=False)
    without = {f.__name__ for f in formulas if not finder.find(f)[0].examples}
    assert without <= {"gold_files"}
    unsourced = {f.__name__ for f in formulas if "Source:" not in (f.__doc__ or "")}
    assert unsourced <= {"gold_files", "explored", "reward_names"}
