r"""The baseline without tools: the model gets the issue and some files, and replies with a patch.

    python examples/direct_baseline.py --model NAME --base-url http://localhost:8000/v1 \
        --tasks bundled --out preds.jsonl
    coding-gym grade preds.jsonl --tasks bundled

The script chooses the files without the gold patch: first files whose path or module is in the
issue or its tracebacks, then files that share the rarest words with the issue. Tests and
documentation are included only if the issue names them.
"""

import argparse
import json
import math
import os
import re
from collections import defaultdict
from contextlib import closing
from pathlib import Path

import openai

from coding_gym import load_tasks
from coding_gym.episode import Episode, EpisodeConfig
from coding_gym.task import Task

SYSTEM = """\
You repair bugs in software. You are given a report of a problem and files of the repository. Find \
the cause and reply with the smallest change that repairs it; you have no tools and only this one \
reply. Do not change tests. Write one unified diff in a block that begins with ```diff."""

MAX_FILES, MAX_FILE_CHARS = 10, 60_000  # number and total length of the files in one request
# Prints all paths, then a line PATH:WORD for each file and each word of the issue in the file.
INDEX = "git ls-files; echo //; git grep -zowIF -f - | tr '\\0' : | LC_ALL=C sort -u"
NO_CODE = re.compile(
    r"(^|/)(tests?|testing|docs?)/|(^|/)(test_|conftest)|_test\.|"
    r"\.(md|rst|txt|json|toml|cfg|ini|ya?ml|lock|csv|html|svg)$"
)
THOUGHT = re.compile(r"\A.*</think>", re.DOTALL)
PATCH = re.compile(r"^(?:diff --git |--- ).*?(?=^```|\Z)", re.DOTALL | re.MULTILINE)


def chosen_files(episode: Episode) -> dict[str, str]:
    """Returns the texts of the most likely files by path; only the first text can be truncated."""
    texts: dict[str, str] = {}
    with episode.access() as context:
        run, issue = context.sandbox.run, episode.task.problem_statement
        words = "\n".join(sorted(set(re.findall(r"[A-Za-z_]\w{2,}", issue))))
        index = run(INDEX, stdin=words.encode(), max_output_bytes=16 << 20).output
        num_left = MAX_FILE_CHARS
        for path in ranked(index, issue)[:MAX_FILES]:
            file = context.sandbox.read_file(path)
            text = file.decode(errors="replace")
            if b"\0" in file or (texts and len(text) > num_left):
                continue
            texts[path] = text[:num_left]
            num_left -= len(texts[path])
    return texts


def ranked(index: str, issue: str) -> list[str]:
    """Returns the paths of files that the bug may be in, the most likely path first."""
    path_lines, _, pairs = index.partition("//\n")
    paths, files_by_word = path_lines.splitlines(), defaultdict[str, list[str]](list)
    for pair in pairs.splitlines():
        path, _, word = pair.rpartition(":")
        files_by_word[word].append(path)
    score = defaultdict[str, float](float)
    for files in files_by_word.values():
        for path in files:
            score[path] += math.log((1 + len(paths)) / len(files))
    depth = {path: num_named(path, issue) for path in paths}
    candidates = [p for p in paths if depth[p] or (score[p] and not NO_CODE.search(p))]
    return sorted(candidates, key=lambda path: (-depth[path], -score[path], path))


def num_named(path: str, issue: str) -> int:
    """Returns the number of parts at the end of a path that the issue contains."""
    parts = path.split("/")
    for start in range(len(parts)):
        tail = "/".join(parts[start:])
        module = tail.removesuffix(".py").replace("/", ".")
        name = "|".join(map(re.escape, {tail, module if "." in module else tail}))
        if re.search(rf"(?<![\w.-])(?:{name})(?![\w-])", issue):
            return len(parts) - start
    return 0


def repair(client: openai.OpenAI, model: str, factory: EpisodeConfig, task: Task) -> str:
    """Sends one request and returns the diffs in the reply; "" if it has no diff."""
    with closing(Episode(task, factory)) as episode:
        episode.start()
        blocks = [f"{path}\n```\n{text}\n```" for path, text in chosen_files(episode).items()]
    prompt = "\n\n".join([task.problem_statement, "Files:", *blocks])
    reply = client.chat.completions.create(
        model=model,
        messages=[{"role": "system", "content": SYSTEM}, {"role": "user", "content": prompt}],
    )
    text = (reply.choices[0].message.content or "").replace("\r\n", "\n")
    return "".join(PATCH.findall(THOUGHT.sub("", text)))


def main() -> None:
    """Writes a predictions file for `coding-gym grade`."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", required=True)
    parser.add_argument("--base-url", required=True)
    parser.add_argument("--tasks", default="bundled")
    parser.add_argument("--task", action="append", help="id of a task; can be repeated")
    parser.add_argument("--out", type=Path, default=Path("preds.jsonl"))
    options = parser.parse_args()
    key = os.environ.get("OPENAI_API_KEY", "none")  # servers on this machine need no key
    client = openai.OpenAI(base_url=options.base_url, api_key=key)
    tasks = load_tasks(options.tasks, task_ids=options.task)
    factory = EpisodeConfig.from_config(tasks=tasks, grading="none")
    with options.out.open("w", encoding="utf-8") as file:
        for task in tasks:
            patch = repair(client, options.model, factory, task)
            row = {"instance_id": task.task_id, "model_patch": patch}
            file.write(json.dumps({**row, "model_name_or_path": options.model}) + "\n")
            print(task.task_id, "a patch" if patch else "no patch")


if __name__ == "__main__":
    main()
