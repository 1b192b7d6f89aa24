"""An agent without a model that ranks suspicious lines and tries the edits of repair templates."""

from collections.abc import Iterator

from coding_gym.agents.scripted import apply_diff, shell, submission
from coding_gym.episode import Episode
from coding_gym.errors import InfrastructureError
from coding_gym.repair.localisation import localise
from coding_gym.repair.search import find_repair
from coding_gym.synthesis.suite import Suite

_TESTS = "PYTHONDONTWRITEBYTECODE=1 python -m pytest -p no:cacheprovider -q 2>&1 | tail -n 12"


def template_repair(episode: Episode, _seed: int = 0) -> Iterator[str]:
    """Yields the actions of a repair by search, from the files and tests that policies can see.

    The agent runs the visible tests in further sandboxes with the task's files, ranks the lines by
    their suspicion (Ochiai score), and tries the edits of the repair templates. Of the edits with
    which all visible tests pass, a tool call applies the first in the order of
    `coding_gym.repair.search.preference`; the agent runs the tests again, and submits. If the
    search finds no edit, or no visible test fails, the agent submits the unchanged tree.

    Args:
        episode: The running episode.

    Raises:
        InvalidArgumentError: No tool of the toolset runs a shell command.
    """
    shell(episode, "")  # raises before the search
    patch = _find_patch(episode)
    if patch:
        yield apply_diff(episode, patch)
        yield shell(episode, _TESTS)
    yield from submission(episode)


def _find_patch(episode: Episode) -> str:
    """Returns the repair as a unified diff, or "" if the search finds no repair."""
    task = episode.task
    if task.language != "python" or episode.template is None:
        return ""
    suite = Suite(task, episode.template, episode.config.sandbox.name)
    try:
        localisation = localise(suite)
        if localisation is None or not localisation.baseline.failing:
            return ""
        repair = find_repair(suite, localisation)
    except InfrastructureError as failure:
        episode.discard_sandbox(failure)
        return ""
    if repair is None:
        return ""
    return repair.patch(localisation.sources[repair.path].text).text
