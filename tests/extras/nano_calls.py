"""Tool calls for the comparison with nano-agent: tables, and patches drawn from seeds."""

import json
import random
from dataclasses import dataclass
from typing import Any

FILES = {
    "area.py": "def area(width, height):\n    return width + height\n",
    "notes.txt": "one\ntwo\ntwo\nthree\n\n  indented\n\ttabbed\nlast line without an end",
    "src/größe.py": "breite = 'für'  # 日本語 🙂\nhöhe = 'für'\n",
    "src/long.txt": "".join(f"{i:04d} {'abc' * (i % 7)}\n" for i in range(400)),
    "empty.txt": "",
    "bom.txt": "\ufeffmarked\n",
}
WORDS = ["value", "key", "für", "日本語", "return", "if", "not", "None", "(", ")", "[0]", "=", "🙂"]
POEM = "\n".join(" ".join(random.Random(f"line {i}").choices(WORDS, k=4)) for i in range(60))
FILES["poem.txt"] = POEM + "\n"


@dataclass(frozen=True)
class Call:
    """A call as a model writes it; ``arguments`` is JSON's text, and need not be JSON."""

    tool: str
    arguments: str

    def to_json(self) -> dict[str, Any]:
        function = {"name": self.tool, "arguments": self.arguments}
        return {"id": "call_0", "type": "function", "function": function}


def shell(command: Any) -> Call:
    return Call("shell", json.dumps({"cmd": command}))


def patch(search: Any, replace: Any, file: Any) -> Call:
    arguments = {"search": search, "replace": replace, "file": file}
    return Call("apply_patch", json.dumps(arguments))


SHELL = [
    *("true", "", " ", "#", "echo", "printf ''", "printf ' \\n\\t '", "false", "exit 0", ":"),
    *(f"exit {code}" for code in (1, 2, 3, 42, 126, 127, 128, 130, 255, 256, 257)),
    *(f"echo said; exit {code}" for code in (1, 77, 255)),
    *("ls", "ls -1 src", "cat notes.txt", "cat empty.txt", "cat no-such-file", "wc -c notes.txt"),
    *("grep -n two notes.txt", "grep two nothing.txt notes.txt", "grep -c xyz notes.txt"),
    *("sed -n 1,2p area.py", "head -n 2 src/long.txt", "tail -n 2 notes.txt", "sort notes.txt"),
    *("find . -name '*.py' -not -path './.git/*' | sort", "git status --short", "git ls-files"),
    *("git log --oneline | wc -l", "git diff --stat", "cat 'src/größe.py'", "git branch --list x"),
    *("no-such-command", "no-such-command; echo on", "cat < area.py", "cat area.py | tail -n 1"),
    *("echo out; echo err 1>&2", "ls no-such-file; echo after", "echo $((6 * 7))", "echo 'a  b'"),
    *("for i in 1 2 3; do echo $i; done", "x=1; echo $x", "echo ${nothing:-kept}", 'echo "$(ls)"'),
    *("if then", "echo 'open", "(((", "echo $(", "case", "f() { echo in; }; f", "set -e; false"),
    *("echo ünïcödé", "echo 日本語 🙂", "printf '%s\\n' für | wc -m", "echo '\\u0041'"),
    *("echo -e '\\x41'", "seq 1 5", "seq 1 3000", "seq 1 400 | tr '\\n' ' '"),
    *("cat src/long.txt", "yes | head -n 5000"),
    *(f"head -c {n} /dev/zero | tr '\\0' x" for n in (1, 1999, 2000, 2001, 2002, 5000, 3_000_000)),
    *(f"for i in $(seq {n}); do printf ü; done" for n in (1999, 2000, 2001)),
    *("printf '  padded  '", "printf '\\n\\nlines\\n\\n'", "echo a; echo; echo b"),
    "printf 'no end'",
    "head -c 2500 /dev/zero | tr '\\0' y; exit 3",
    "printf '%2100s' x",
    "python3 -c 'print(6 * 7)'",
    "python3 -c 'import sys; sys.exit(5)'",
    "python3 -c 'import sys; sys.stderr.write(\"wrong\"); sys.exit(1)'",
    "basename /a/b/c; dirname /a/b/c",
    "test -f area.py && echo there || echo gone",
]

MALFORMED = [
    *('{"cmd": "ls', '{"cmd": "ls"', "{", "[", "ls", "{'cmd': 'ls'}", '{"cmd": }', '"'),
    *('{"cmd": "ls"}and more', '{"cmd" "ls"}', '{cmd: "ls"}', '{"cmd": "\\x"}', '{"cmd": tru}'),
    *('{"cmd": "a\nb', '{"cmd": "\\u12"}', '{"cmd": 01}', '{"cmd": "ls"}}', "\x00", "nul"),
]

ODD = [
    *(Call(name, "{}") for name in ("sing", "Shell", "shell ", "bash", "日本語", "apply-patch")),
    *(Call("sing", text) for text in ('{"song": "la"}', "{", "not JSON")),
    *(Call("shell", text) for text in ("{}", '{"command": "ls"}', '{"CMD": "ls"}')),
    Call("shell", '{"cmd": "echo first", "cmd": "echo second"}'),
    Call("shell", '{"cmd": "echo kept", "more": [1, {"a": null}]}'),
    Call("shell", ' \n {"cmd": "echo around"} \n'),
    Call("shell", '{"cmd": "echo \\u00fc \\ud83d\\ude42"}'),
    *(Call("apply_patch", text) for text in ("{}", '{"search": "a"}', '{"file": "area.py"}')),
    Call("apply_patch", '{"search": "a", "replace": "b"}'),
    Call("apply_patch", '{"replace": "b", "file": "area.py"}'),
    Call("apply_patch", '{"search": "a", "replace": "b", "path": "area.py"}'),
]

PATCHES = [
    patch("no such text", "", "area.py"),
    patch("two", "zwei", "notes.txt"),
    patch("two\ntwo", "two", "notes.txt"),
    patch("two\n", "2\n", "notes.txt"),
    patch("one", "one", "notes.txt"),
    patch("  indented\n\ttabbed", "\tindented\n  tabbed", "notes.txt"),
    patch("last line without an end", "last line with an end\n", "notes.txt"),
    patch("width + height", "width * height", "./area.py"),
    patch("width * height", "width\\height", "src/../area.py"),
    patch("für", "gegen", "src/größe.py"),
    patch("breite = 'für'", "breite = '🙂'", "src/größe.py"),
    patch("日本語", "", "src/größe.py"),
    patch("a", "b", "no-such-file.py"),
    patch("a", "b", "no/such/folder.py"),
    patch("a", "b", "área.py"),
    patch("a", "b", "area.py/inside"),
    patch("a", "b", "empty.txt"),
    patch("marked", "MARKED", "bom.txt"),
    patch("0399", "0400", "src/long.txt"),
    patch("abc", "abd", "src/long.txt"),
    patch("A" * 5000, "b", "src/long.txt"),
    patch("def", "x" * 20_000, "area.py"),
    patch("\\n", "", "area.py"),
    patch(" ", "", "bom.txt"),
    patch("\n", "", "empty.txt"),
    patch("aa" * 40, "a", "notes.txt"),
]


def drawn(seed: int) -> Call:
    """A patch of the poem: its search may be there once, often, nearly, or not at all."""
    rng = random.Random(seed)
    start = rng.randrange(len(POEM))
    search = POEM[start : start + rng.choice([1, 2, 5, 20, 80])]
    if rng.random() < 0.2:
        search = search[::-1]
    if rng.random() < 0.1:
        search = search.strip() + " "
    replace = " ".join(rng.choices(WORDS, k=rng.randrange(6))) + rng.choice(["", "\n"])
    return patch(search or "x", replace, rng.choice(["poem.txt", "./poem.txt", "src/../poem.txt"]))


CALLS = [
    *map(shell, SHELL),
    *(Call(tool, text) for tool in ("shell", "apply_patch") for text in MALFORMED),
    *ODD,
    *PATCHES,
    *map(drawn, range(100)),
    shell("sha256sum area.py notes.txt poem.txt src/* bom.txt empty.txt"),
    shell("git status --short"),
]
