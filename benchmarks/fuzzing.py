"""Actions as no model should write them: valid calls in every format, bent, broken and spliced."""

import json
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np

from coding_gym.calls import ToolCall
from coding_gym.tools import Toolset, get_toolset, toolset_names
from coding_gym.tools.formats import TOOL_FORMATS, render_calls

CANARIES = ("/tmp/canary", "/home/agent/canary")  # noqa: S108 - inside the sandbox
"""Folders of the sandbox outside the workspace that no file tool may reach."""
POOL = 24  # sampled calls per toolset and format
_MARKS = [
    *("<tool_call>", "</tool_call>", "<think>", "</think>", "<function=", "</function>", ">"),
    *("<parameter=", "</parameter>", "[TOOL_CALLS]", "[ARGS]", "<|python_tag|>", "<|eom_id|>"),
    *("```bash\n", "```json\n", "```", "*** Begin Patch\n", "*** End Patch\n", "*** Update File: "),
    *("*** Add File: ", "*** Delete File: ", "*** Move to: ", "@@ ", "@@\n", "+", "-", " ", "\n"),
    *("{", "}", "[", "]", '"', "'", ":", ",", "\\", "\\u", "\\ud800", "null", "true", "NaN"),
    *("Infinity", "-0", "1e999", "9" * 400, '"name"', '"arguments"', '"parameters"', '"function"'),
    *('"tool_calls"', '"role": "assistant"', '"content"', '"id"', "name", "arguments", "\x00"),
    *(
        "\ufeff",
        "\u2028",
        "\ud800",
        "\udcff",
        "🙂",
        "é",
        "e\u0301",
        "\r\n",
        "\x1b[2J",
        "&lt;",
        "/*",
    ),
    *("<|im_start|>", "<|im_end|>", "<|endoftext|>", "</s>", "[INST]", "{{", "}}", "%s", "{0}"),
    *("<|channel|>", "<|message|>", "<|start|>assistant", "to=functions.", "<|constrain|>json"),
    *("<｜tool▁calls▁begin｜>", "<｜tool▁call▁begin｜>", "<｜tool▁sep｜>", "<｜tool▁call▁end｜>"),
    *("<｜DSML｜", "</｜DSML｜", 'string="true">', "<|tool_call_begin|>", "<|tool_call_end|>"),
    *("<|tool_call_argument_begin|>", "functions.shell:0", "<|open|>", "<|sep|>", "<|close|>"),
    *("<arg_key>", "</arg_key>", "<arg_value>", "</arg_value>", '<invoke name="', "</invoke>"),
    *('<parameter name="', "]<]minimax[>[", "<item>", "<atem:", "[CALL_ID]", "<|python_start|>["),
    *("<start_function_call>call:", "<escape>", '<|"|>', "<|tool_call>call:", "<tool_call|>"),
    *("<|tool_call_start|>[", "]<|tool_call_end|>", "<code>", "(cmd=", '"type": "tool_use"'),
]
_PATHS = [
    *("", ".", "..", "/", "~", "./", "../x", "../../etc/passwd", "/etc/passwd", "/proc/1/environ"),
    *("/proc/self/mem", "/dev/null", "/dev/zero", "/dev/full", "a" * 300, "a/" * 2000, "-rf", "*"),
    *("README.md", "./README.md", "out/../README.md", "link", "link/x", "loop", "folder", ".git"),
    *(".git/config", ".git/hooks/pre-commit", "no/such/folder/file.py", "new.txt", "naïve.py"),
    *("\x00", "a\x00b", "a\nb", "$(id)", "`id`", "; true", "'", '"', "\\", "C:\\x", "file://x"),
    *("canary/a.txt", f"{CANARIES[0]}/a.txt", f"..{CANARIES[0]}/a.txt", *CANARIES),
]
_VALUES: list[Any] = [
    *(None, True, False, 0, 1, -1, 2**31, 2**63, -(2**63), 10**30, 1.5, -0.0, 1e308, "", " "),
    *([], {}, [[]], [None], [1, -1], [1, 2, 3], ["a"], {"a": {}}, [[[[[[[["deep"]]]]]]]]),
    *("1", "-1", "1e3", "true", "null", "[1, 2]", '{"a": 1}', "x" * 5000, "\n" * 3000, "🙂" * 900),
]
_COMMANDS = [
    *("true", "false", "exit 7", "kill -9 $$", "kill -STOP $$", "sleep 9", "cat", "read x", "yes"),
    *("seq 1 99999", "head -c 3000000 /dev/urandom", "echo 'open", "rm -rf .git", "rm *"),
    *("mkdir -p folder; ln -sfn /etc link; ln -sfn loop loop", "chmod 000 .", "chmod 755 .", "ls"),
    *(":(){ :|:& };:", "nohup sleep 99 &", "exec 1>&-; exec 2>&-", "printf '\\x00\\xff'", "git gc"),
    *("touch new.txt; mkfifo pipe", "cat pipe", "dd if=/dev/zero of=big bs=1M count=8", "rm big"),
    *("python3 -c 'import os; os.setsid(); os.fork(); os.abort()'", "git stash", "trap '' TERM"),
    *("export PATH=", "alias ls=rm", "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT", "set -eux"),
]


@dataclass(frozen=True, slots=True)
class Action:
    """One fuzzed action.

    Attributes:
        text: What the policy says.
        toolset: Name of the toolset that it is for.
        tool_format: How it is to be read.
    """

    text: str
    toolset: str
    tool_format: str


def action(
    seed: int,
    index: int,
    toolset: str = "",
    more_paths: Sequence[str] = (),
    max_mutations: int = 8,
) -> Action:
    """Returns one action; the same one for the same arguments.

    Args:
        seed: Of the whole run.
        index: Which action of it.
        toolset: The toolset; any where it is "".
        more_paths: More values for arguments that are paths.
        max_mutations: How often the text is changed at most; 1 leaves most of them readable.
    """
    rng = random.Random(seed << 40 | index)  # noqa: S311 - it repeats
    name = toolset or rng.choice(toolset_names())
    tool_format = rng.choice(TOOL_FORMATS)
    written_in = (
        tool_format if rng.random() < 0.8 or max_mutations == 1 else rng.choice(TOOL_FORMATS)
    )
    if rng.random() < 0.5:
        text = rng.choice(_rendered(name, written_in))
    else:
        calls = [_bent(rng, name, more_paths) for _ in range(rng.choice([1, 1, 1, 2, 5]))]
        text = _render(calls, written_in, _toolset(name).schemas)
    for _ in range(min(max_mutations * (rng.random() < 0.6), rng.choice([1, 1, 2, 3, 8]))):
        text = rng.choice(_MUTATIONS)(rng, text)
    strict = "[strict]" if rng.random() < 0.2 else ""
    return Action(text, name, tool_format + strict)


@cache
def _toolset(name: str) -> Toolset:
    return get_toolset(name)


@cache
def _rendered(toolset: str, tool_format: str) -> tuple[str, ...]:
    rng = np.random.default_rng(0)
    sampled = [_toolset(toolset).sample_call(rng) for _ in range(POOL)]
    schemas = _toolset(toolset).schemas
    singles = [_render([call], tool_format, schemas) for call in sampled]
    triples = (_render(sampled[i : i + 3], tool_format, schemas) for i in range(0, POOL, 3))
    return (*singles, *triples)


def _render(
    calls: Sequence[ToolCall], tool_format: str, schemas: Sequence[Mapping[str, Any]]
) -> str:
    """Writes calls in a format; as JSON where it has no words for them."""
    try:
        return render_calls(calls, tool_format, schemas)
    except ValueError:
        return json.dumps([{"name": c.name, "arguments": dict(c.arguments)} for c in calls])


def _bent(rng: random.Random, toolset: str, more_paths: Sequence[str]) -> ToolCall:
    """A call whose arguments are of the right names, most of them, and of any value."""
    schema = rng.choice(_toolset(toolset).schemas)["function"]
    properties = schema["parameters"].get("properties", {})
    arguments = {
        name: _value(rng, name, kind, more_paths)
        for name, kind in properties.items()
        if rng.random() < 0.93
    }
    if rng.random() < 0.05:
        arguments[rng.choice(["more", "", "self", "path", "command"])] = rng.choice(_VALUES)
    call = ToolCall(schema["name"], arguments, f"call_{rng.randrange(3)}")
    return replace(call, name=rng.choice(["", "sing", "Bash", "__init__"])) if _rare(rng) else call


def _value(rng: random.Random, name: str, kind: Any, more_paths: Sequence[str]) -> Any:
    if _rare(rng):
        return rng.choice(_VALUES)
    if "enum" in kind and rng.random() < 0.9:
        return rng.choice(kind["enum"])
    if kind.get("type") in ("integer", "number"):
        return rng.choice([0, 1, 2, 5, 40, 1000, -1])
    if name in ("cmd", "command"):
        host = [f"rm -rf {path}; echo x > {path}/a.txt" for path in more_paths]
        return rng.choice([*_COMMANDS, *host])
    if name in ("path", "file", "paths"):
        path = rng.choice([*_PATHS, *more_paths])
        return [path] if kind.get("type") == "array" else path
    return rng.choice(["def", "the", "", "\n", "x = 1\n", "é", "class A:\n    pass\n", "a" * 300])


def _rare(rng: random.Random) -> bool:
    return rng.random() < 0.06


def _cut(rng: random.Random, text: str) -> str:
    start, end = sorted((rng.randrange(len(text) + 1), rng.randrange(len(text) + 1)))
    return rng.choice([text[:start], text[end:], text[:start] + text[end:]])


def _insert(rng: random.Random, text: str) -> str:
    at = rng.randrange(len(text) + 1)
    return text[:at] + rng.choice(_MARKS) * rng.choice([1, 1, 1, 2, 70]) + text[at:]


def _repeat(rng: random.Random, text: str) -> str:
    start = rng.randrange(len(text) + 1)
    part = text[start : start + rng.choice([1, 8, 64])]
    return text[:start] + part * rng.choice([2, 3, 3, 40, 150]) + text[start:]


def _bytes(rng: random.Random, text: str) -> str:
    data = bytearray(text.encode("utf-8", "surrogatepass"))
    for _ in range(rng.choice([1, 1, 4, 16])):
        if data:
            data[rng.randrange(len(data))] = rng.randrange(256)
    return data.decode("utf-8", rng.choice(["replace", "ignore", "surrogateescape"]))


def _swap(rng: random.Random, text: str) -> str:
    mark, other = rng.choice(_MARKS), rng.choice(_MARKS)
    return text.replace(mark, other, rng.choice([1, -1]))


def _wrap(rng: random.Random, text: str) -> str:
    depth = rng.choice([1, 2, 3, 70, 300])
    left, right = rng.choice([("[", "]"), ('{"a":', "}"), ("<think>", "</think>"), ("(", ")")])
    return left * depth + text + right * rng.choice([0, depth, depth - 1])


def _splice(rng: random.Random, text: str) -> str:
    other = rng.choice(_rendered(rng.choice(toolset_names()), rng.choice(TOOL_FORMATS)))
    at = rng.randrange(len(text) + 1)
    return rng.choice([text + other, other + text, text[:at] + other + text[at:], other[:at]])


def _quote(rng: random.Random, text: str) -> str:
    return rng.choice([json.dumps(text), text.replace('"', "'"), text.replace('"', '\\"')])


_MUTATIONS: tuple[Callable[[random.Random, str], str], ...] = (
    *(_cut, _insert, _insert, _repeat, _bytes, _bytes, _swap, _wrap, _splice, _quote),
)
