"""The scripted policy of `record_episodes.py`: what it writes with each toolset."""

import json
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

Call = tuple[str, dict[str, Any]]

TOOLSETS = ("nano", "bash", "editor", "thesis", "codex", "heavy", "pdb")
FAILING = (  # makes a test file that fails
    "sed 's/^    assert /    assert not /' $(ls tests/test_*.py | head -n 1) > tests/test_made.py"
)


@dataclass(frozen=True)
class Gold:
    """A gold patch as a policy could write it.

    Attributes:
        text: The unified diff.
        hunks: (path, first line, old text, new text) of each hunk.
        symbol: A function or class that it changes.
    """

    text: str
    hunks: list[tuple[str, int, str, str]] = field(default_factory=list)
    symbol: str = "main"

    @classmethod
    def of(cls, task: Any) -> "Gold":
        """Reads the gold patch of a task."""
        hunks = []
        for change in re.split(r"^diff --git ", task.gold_patch, flags=re.MULTILINE)[1:]:
            path = change.split("\n", 1)[0].rpartition(" b/")[2]
            for hunk in change.split("\n@@ -")[1:]:
                lines = hunk.removesuffix("\n").split("\n")[1:]
                texts = ["\n".join(x[1:] for x in lines if x[:1] in (" ", s)) for s in "-+"]
                hunks.append((path, int(re.split("[, ]", hunk)[0]), texts[0], texts[1]))
        named = re.search(r"\b(?:def|class) (\w+)", task.gold_patch)
        return cls(task.gold_patch, hunks, named[1] if named else "main")

    @property
    def path(self) -> str:
        """The first file that is changed."""
        return self.hunks[0][0]


def shell(toolset: str, command: str) -> Call:
    """Returns a call that runs a command."""
    names = {"nano": ("shell", "cmd"), "codex": ("run_command", "command")}
    name, argument = names.get(toolset, ("bash", "command"))
    return name, {argument: command}


def submit(toolset: str) -> Call:
    """Returns the call that submits."""
    if toolset == "bash":
        return shell("bash", "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT")
    return "submit", {"status": "solved"} if toolset == "codex" else {}


def editor(command: str, path: str, **arguments: Any) -> Call:
    """Returns a call of the toolset `editor`'s own tool."""
    return "str_replace_editor", {"command": command, "path": path, **arguments}


def edit(toolset: str, path: str, first: int, old: str, new: str) -> Call:
    """Returns the call that replaces a text by another."""
    last = first + old.count("\n")
    calls: dict[str, Call] = {
        "nano": ("apply_patch", {"search": old, "replace": new, "file": path}),
        "bash": shell("bash", f"sed '{first}s/$/ /' '{path}' > made.txt; cp made.txt '{path}'"),
        "editor": editor("str_replace", path, old_str=old, new_str=new),
        "thesis": ("str_replace", {"path": path, "old_str": old, "new_str": new}),
        "codex": ("replace_text", {"path": path, "old_text": old, "new_text": new}),
        "heavy": ("edit", {"path": path, "old": old, "new": new}),
        "pdb": ("rewrite", {"path": path, "start": first, "end": last, "new_code": new}),
    }
    return calls[toolset]


def looks(toolset: str, gold: Gold) -> list[Call]:
    """Returns calls that look around with the toolset's own tools."""
    path, name = gold.path, gold.symbol
    calls: dict[str, list[Call]] = {
        "editor": [
            editor("view", "."),
            editor("view", path, view_range=[1, 20]),
            editor("create", "notes.txt", file_text="one\ntwo\n"),
            editor("insert", "notes.txt", insert_line=1, new_str="between"),
            editor("undo_edit", "notes.txt"),
        ],
        "thesis": [
            ("view_file", {"path": path, "start_line": 3, "end_line": 12}),
            ("write_file", {"path": "notes.txt", "content": "one\n"}),
        ],
        "codex": [
            ("list_files", {}),
            ("inspect_tree", {"max_depth": 2}),
            ("read_file", {"path": path, "start_line": 2, "max_lines": 9}),
            ("rg", {"pattern": rf"\b{name}\b"}),
            ("write_file", {"path": "notes.txt", "content": "one\n", "append": True}),
            ("run_command", {"command": "echo begins; sleep 9", "timeout_s": 0.2}),
        ],
        "heavy": [
            ("repo_map", {"max_tokens": 400}),
            ("find_definition", {"name": name}),
            ("find_references", {"name": name}),
            shell("heavy", FAILING),
            ("locate_fault", {"test": "tests/test_made.py"}),
            ("note", {"text": f"{name} is in {path}."}),
            ("create", {"path": "broken.py", "content": "def f(:\n"}),
            ("notes", {}),
        ],
        "pdb": [
            ("view", {"path": path, "start": 1, "end": 9}),
            shell("pdb", FAILING),
            ("pdb", {"command": "w\nup"}),
            ("pdb", {"command": f"b {path}:{gold.hunks[0][1]}\nc"}),
            ("pdb", {"command": f"start -m py_compile {path}\nn\nw"}),
            ("pdb", {"command": "p 1 + 1\nc"}),
            ("eval", {"command": "python -m pytest -q tests -x"}),
        ],
    }
    return [
        *calls.get(toolset, []),
        shell(toolset, f"ls -A; head -n 5 {path}; exit 3"),
        shell(toolset, "seq 1 9000"),
    ]


def written(call: Call, number: int) -> str:
    """Returns the text of a call, in one of four ways that take turns."""
    name, arguments = call
    text = json.dumps({"name": name, "arguments": arguments}, ensure_ascii=False)
    function = {"name": name, "arguments": json.dumps(arguments)}
    message = {
        "role": "assistant",
        "content": "Next.",
        "tool_calls": [{"id": f"call_{number}", "type": "function", "function": function}],
    }
    ways = (
        text,
        f"Let me see.\n<tool_call>\n{text}\n</tool_call>",
        f"Like this:\n```json\n{text}\n```\n",
        json.dumps(message),
    )
    return ways[number % len(ways)]


def mistakes(toolset: str) -> list[str]:
    """Returns actions that no toolset can run."""
    name, arguments = shell(toolset, "ls")
    argument = next(iter(arguments))
    return [
        "I will read the code first.",
        written(("no_such_tool", {"path": "."}), 0),
        written((name, {"wrong": "ls"}), 1),
        written((name, {argument: ["ls"]}), 0),
        f'{{"name": "{name}", "arguments": {{"{argument}": "ls',
        f'<tool_call>\n{{"name": "{name}", "arguments": {{"{argument}": ls}}\n</tool_call>',
        "<think>\nA block?\n</think>\n```bash\npwd; git status --short\n```",
        "",
    ]


def patched(toolset: str, gold: Gold, *, by_shell: bool) -> list[Call]:
    """Returns the calls that apply the gold patch."""
    if by_shell or toolset == "bash" or "new file mode" in gold.text:
        return [shell(toolset, f"git apply - <<'END'\n{gold.text}END\ngit diff --stat")]
    if toolset == "codex":
        return [("apply_patch", {"patch": gold.text})]
    # From the end, so that line numbers stay those of the patch.
    return [edit(toolset, *hunk) for hunk in reversed(gold.hunks)]


def script(toolset: str, gold: Gold, number: int) -> list[str]:
    """Returns the actions of an episode; what varies goes by the task's number.

    Every fifth policy leaves the bug as it is, every seventh is stopped from outside, and with
    `nano` every third ends by a text without a call.
    """
    from coding_gym import Completion, Stop

    outside = "../../../etc/passwd"
    calls = looks(toolset, gold)
    calls += [edit(toolset, outside, 1, "root", "toor"), shell(toolset, f"cat {outside} > /x")]
    calls.append(edit(toolset, gold.path, 1, "no such text", "any"))
    actions = [written(call, index) for index, call in enumerate(calls)]
    actions[1:1] = mistakes(toolset)
    both = [written(shell(toolset, f"echo {word} > made.txt; cat made.txt"), 1) for word in "ab"]
    actions.append("\n".join(both))
    restore = shell(toolset, f"git checkout -q . && git clean -fdq && git diff --stat {gold.path}")
    actions.append(written(restore, 2))
    calls = patched(toolset, gold, by_shell=number % 2 == 1)
    if number % 5 == 4:
        calls = [shell(toolset, f"echo '# A note.' >> {gold.path}")]
    actions += [written(call, index) for index, call in enumerate(calls)]
    looked = written(shell(toolset, "git diff"), 0)
    ids = list(range(7, 7 + len(looked) // 3))
    actions.append(Completion(looked, ids, [-0.25] * len(ids)))
    if number % 7 == 6:
        return [*actions, Stop("enough")]
    if toolset == "nano" and number % 3 == 2:
        actions.append("The repair is done.")
    return [*actions, written(submit(toolset), number)]


def vector_action(toolset: str, gold: Gold, env: int, turn: int) -> str:
    """Returns one env's action at a turn of its episode: each env of four has a plan of its own."""
    repair = shell(toolset, f"git apply - <<'END'\n{gold.text}END")
    tries: Sequence[str] = [written(call, turn) for call in looks(toolset, gold)]
    plans: tuple[Sequence[str], ...] = (
        [tries[0], written(repair, 1), written(submit(toolset), 1)],
        [*mistakes(toolset), written(submit(toolset), 1)],
        [*tries, written(edit(toolset, *gold.hunks[0]), 1), written(submit(toolset), 1)],
        [tries[-1], written(repair, 1), *[written(shell(toolset, "git status"), 1)] * 4],
    )
    plan = plans[env % len(plans)]
    return plan[turn % len(plan)]
