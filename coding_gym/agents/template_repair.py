"""An agent without a model: locates suspicious lines, tries classic edits, keeps what passes."""

from collections.abc import Generator
from typing import Any

from coding_gym.agents.protocol import Info, Play
from coding_gym.agents.tool_use import ToolUse, output_of
from coding_gym.repair import driver
from coding_gym.repair.localisation import localise
from coding_gym.repair.search import Search

_TESTS = "PYTHONDONTWRITEBYTECODE=1 python -m pytest -p no:cacheprovider -q 2>&1 | tail -n 12"
# The counts end the search first, so that it does not depend on the machine.
_MAX_CANDIDATES, _MAX_PAIRS = 1000, 250  # single edits, and pairs of edits after them
_MAX_SEARCH_S = 60.0  # of the processor
_BATCH_SIZE = 250  # candidates per tool call

_Steps = Generator[str, Info, Any]


def template_repair(tools: ToolUse) -> Play:
    """Repairs by search, through tool calls only, in at most 40 turns; sees what any policy sees.

    It writes a small driver to /tmp, which runs the visible tests on a copy of the tree and reports
    what failed and which lines ran; ranks the lines by Ochiai; has the driver try the edits of the
    repair templates there, then pairs of edits; applies the best one that makes every visible test
    pass, runs the tests again, and submits. Where several edits pass it takes the simplest by
    a fixed rule (`coding_gym.repair.pairs.simplest`). Where nothing makes all failing tests pass,
    one edit that makes at least half of them pass and breaks none will do. Where no visible test
    fails, or nothing is found, it submits the tree unchanged.

    Args:
        tools: The tools of the episode.

    Raises:
        InvalidArgumentError: No tool runs a shell command.
    """
    candidate = yield from _find(tools)
    if candidate is not None:
        edits = sorted(candidate.edits, reverse=True)  # from the end of each file to its start
        places = [[e.path, e.start, e.end, e.replacement] for e in edits]
        yield from _through_shell(tools, driver.ask("apply", {"edits": places}))
        yield _shell(tools, _TESTS)
    yield from tools.submission()


def _find(tools: ToolUse) -> _Steps:
    found = yield from _through_shell(tools, localise())
    if found is None or not found.baseline.failing:
        return None
    search = Search(found.sources, len(found.baseline.failing), _MAX_SEARCH_S, _BATCH_SIZE)
    commands = search.run(found.candidates(), _MAX_CANDIDATES, _MAX_PAIRS)
    return (yield from _through_shell(tools, commands))


def _through_shell(tools: ToolUse, commands: Generator[str, str, Any]) -> _Steps:
    """Runs the commands that a generator yields, sends it their output, returns its value."""
    try:
        command = next(commands)
        while True:
            info = yield _shell(tools, command)
            command = commands.send(output_of(info))
    except StopIteration as end:
        return end.value


def _shell(tools: ToolUse, command: str) -> str:
    action = tools.shell(command)
    if action is None:
        raise tools.refusal("template-repair", f"runs this shell command: {command[:80]}")
    return action
