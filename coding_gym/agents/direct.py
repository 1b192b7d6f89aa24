"""Direct generation: one request with the issue and some files, one patch back, no tools."""

import math
import re
from collections import defaultdict

from coding_gym.action import Stop
from coding_gym.agents.chat import ChatAgent
from coding_gym.agents.live_episode import LiveEpisode
from coding_gym.episode import Episode
from coding_gym.text.truncate import well_formed
from coding_gym.tools.files import open_file
from coding_gym.tools.patches import read_patch
from coding_gym.tools.patching import apply_patch
from coding_gym.tools.toolset import Refusal, ToolContext

_SYSTEM = """\
You repair bugs in software. You are given a report of a problem and files of the repository. Find \
the cause and reply with the smallest change that repairs it; you have no tools and only this one \
reply. Do not change tests. Write one patch in a block that begins with ```diff: a unified diff, \
or a patch like this, which needs no line numbers:

*** Begin Patch
*** Update File: path/of/the/file.py
@@ def a_line_above(the, change):
 a line that stays
-a line that goes
+a line that comes
 a line that stays
*** End Patch"""

MAX_FILE_CHARS = 60_000  # of all files in the request together
_MAX_OUTPUT_BYTES = 16 << 20
# Prints all paths, then each word of the issue once for each file that has it.
_INDEX = "git ls-files; echo //; git grep -zowIF -f - | tr '\\0' : | LC_ALL=C sort -u"
_NO_CODE = re.compile(
    r"(^|/)(tests?|testing|docs?)/|(^|/)(test_|conftest)|_test\.|"
    r"\.(md|rst|txt|json|toml|cfg|ini|ya?ml|lock|csv|html|svg)$"
)
_THOUGHT = re.compile(r"\A.*</think>", re.DOTALL)
_PATCH = re.compile(
    r"^(?:diff --git |--- |\*\*\* Begin Patch).*?(?=^```|\Z)", re.DOTALL | re.MULTILINE
)


class DirectAgent(ChatAgent):
    """Repairs by one reply of a chat model, the baseline without tools.

    The files in the request are chosen without the gold patch: first those whose path or module is
    in the issue, tracebacks included, then those that share the rarest words with it; tests and
    prose only where they are named. A reply without a patch, or with one that does not apply,
    leaves the tree as it was, so the attempt is not resolved. The record has the chat that the
    model had.

    Args:
        client, model, sampling: As for `ChatAgent`.
    """

    name = "direct"

    async def play(self, live: LiveEpisode) -> None:
        """Asks once, applies the patch, and has it graded."""
        issue = live.task.problem_statement
        files = await live.in_thread(_chosen_files, live.episode, issue)
        file_blocks = [f"{path}\n```\n{text}\n```" for path, text in files.items()]
        chat = live.episode.messages
        chat[:] = [
            {"role": "system", "content": _SYSTEM},
            {"role": "user", "content": "\n\n".join([issue, "Files:", *file_blocks])},
        ]
        reply = await self._ask(live, {"messages": chat})
        chat.append({"role": "assistant", "content": reply.text})
        outcome = await live.in_thread(_applied, live.episode, reply.text)
        await live.step(Stop(outcome), reply.call)


def _chosen_files(episode: Episode, issue: str) -> dict[str, str]:
    """Returns the texts of the likeliest files, by their paths; only the first may be cut."""
    chosen: dict[str, str] = {}
    max_chars = MAX_FILE_CHARS
    with episode.access() as context:
        for path in _ranked(context, issue)[:10]:
            try:
                file = open_file(context, path)
            except Refusal:  # too large, or a link to the outside
                continue
            text, is_first = well_formed(file.text), not chosen
            if file.content.is_binary or (len(text) > max_chars and not is_first):
                continue
            if len(text) > max_chars:
                text = text[:max_chars] + "\n[… the rest of this file is left out …]"
            chosen[path] = text
            max_chars -= len(text)
    return chosen


def _ranked(context: ToolContext, issue: str) -> list[str]:
    """Returns the paths of files, the likeliest first."""
    words = "\n".join(sorted(set(re.findall(r"[A-Za-z_]\w{2,}", issue))))
    found = context.sandbox.run(_INDEX, stdin=words.encode(), max_output_bytes=_MAX_OUTPUT_BYTES)
    listed, _, pairs = found.output.partition("//\n")
    paths, files = listed.split("\n")[:-1], defaultdict[str, list[str]](list)
    for pair in pairs.split("\n")[:-1]:
        path, _, word = pair.rpartition(":")
        files[word].append(path)
    score = defaultdict[str, float](float)
    for holders in files.values():
        for path in holders:
            score[path] += math.log((1 + len(paths)) / len(holders))
    named = {path: _num_named(path, issue) for path in paths}
    wanted = [p for p in paths if named[p] or (score[p] and not _NO_CODE.search(p))]
    return sorted(wanted, key=lambda path: (-named[path], -score[path], path))


def _num_named(path: str, issue: str) -> int:
    """Returns how many parts at the end of a path stand in the issue, as a path or a module."""
    parts = path.split("/")
    for start in range(len(parts)):
        tail = "/".join(parts[start:])
        module = tail.removesuffix(".py").replace("/", ".")
        name = "|".join(map(re.escape, {tail, module if "." in module else tail}))
        if re.search(rf"(?<![\w.-])(?:{name})(?![\w-])", issue):
            return len(parts) - start
    return 0


def _applied(episode: Episode, reply: str) -> str:
    """Applies the patch of a reply to the tree, all of it or nothing; returns the outcome."""
    text = _THOUGHT.sub("", reply.replace("\r\n", "\n"))
    try:
        with episode.access() as context:
            apply_patch(context, read_patch("".join(_PATCH.findall(text))))
    except Refusal as problem:
        return f"the reply cannot be used: {problem}"
    return "the patch is applied"
