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


class TemplateRepairAgent:
    """Repairs by search, through tool calls only; it sees what any policy sees.

    It writes a small driver to /tmp, which runs the visible tests on a copy of the tree and reports
    what failed and which lines ran; ranks the lines by Ochiai; has the driver try the edits of the
    repair templates there, then pairs of edits; applies the best one that makes every visible test
    pass, runs the tests again, and submits. Where several edits pass it takes the simplest by
    a fixed rule (`coding_gym.repair.pairs.simplest`). Where nothing makes all failing tests pass,
    one edit that makes at least half of them pass and breaks none will do. Where no visible test
    fails, or nothing is found, it submits the tree unchanged.

    Args:
        tools: The tools of the env.

    Raises:
        InvalidArgumentError: No tool runs a shell command.
    """

    name = "template-repair"

    def __init__(self, tools: ToolUse | None = None) -> None:
        self._tools = tools or ToolUse()
        self._shell("true")

    def play(self, info: Info) -> Play:  # noqa: ARG002 - it reads the tests, not the report
        """Plays one episode, in at most 40 turns."""
        candidate = yield from self._find()
        if candidate is not None:
            edits = sorted(candidate.edits, reverse=True)  # from the end of each file to its start
            places = [[e.path, e.start, e.end, e.replacement] for e in edits]
            yield from self._through_shell(driver.ask("apply", {"edits": places}))
            yield self._shell(_TESTS)
        yield from self._tools.submission()

    def _find(self) -> _Steps:
        found = yield from self._through_shell(localise())
        if found is None or not found.baseline.failing:
            return None
        num_failing = len(found.baseline.failing)
        search = Search(found.sources, num_failing, _MAX_SEARCH_S, _BATCH_SIZE)
        return (
            yield from self._through_shell(
                search.run(found.candidates(), _MAX_CANDIDATES, _MAX_PAIRS)
            )
        )

    def _through_shell(self, commands: Generator[str, str, Any]) -> _Steps:
        """Runs the commands that a generator yields, sends it their output, returns its value."""
        try:
            command = next(commands)
            while True:
                info = yield self._shell(command)
                command = commands.send(output_of(info))
        except StopIteration as end:
            return end.value

    def _shell(self, command: str) -> str:
        action = self._tools.shell(command)
        if action is None:
            raise self._tools.refusal(self.name, f"runs this shell command: {command[:80]}")
        return action
