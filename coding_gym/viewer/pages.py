"""The content of the viewer's pages as JSON values, from the indexes and records of runs.

Every text of a record becomes ``{"text": its beginning, "total": its length}``, so that no page is
larger than a browser can take; `Run.text` gives the rest piece by piece.
"""

import hashlib
import json
import math
import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import accumulate, chain, count, takewhile, zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field, validate_call

from coding_gym.episode.factory import task_digest
from coding_gym.errors import InvalidArgumentError, UnknownNameError
from coding_gym.evaluation.comparison import flat, setting_differences
from coding_gym.evaluation.report import run_tasks
from coding_gym.evaluation.statistics import (
    Estimate,
    mean_estimate,
    paired_difference,
    rate_estimate,
    resolved_rate,
)
from coding_gym.rollout.run_folder import CONFIG, INDEX, RunFolder
from coding_gym.trajectory import Trajectory, Turn
from coding_gym.viewer.index import (
    STARTED,
    Row,
    RunIndex,
    argument_text,
    clean,
    number,
    open_regular,
    thoughts,
)

if TYPE_CHECKING:
    from coding_gym.task import Task

Json = dict[str, Any]

MAX_TURNS, MAX_EPISODES = 50, 500
"""Turns and episodes of one page."""

_MAX_TEXT, _MAX_MORE = 20_000, 50_000  # characters of a text on a page, and of a further piece
_MAX_CONFIG_BYTES = 64 << 20
_RUNNING_S, _RATE_S = 120, 600

_COLUMNS = (
    *("task", "attempt", "ifnull(repo, '') AS repo", "ifnull(difficulty, '') AS difficulty"),
    *("outcome", "reason", "stop_reason", "error_class"),
    *("turns", "tokens", "cost", "duration_s", "reward", "started_at", "indexed"),
)
_FACETS = {"repo": "tasks", "difficulty": "tasks"}
_FACETS |= {"stop_reason": "episodes", "error_class": "episodes"}
_TABLE = "episodes LEFT JOIN tasks USING (task)"

_SETTINGS = {"agent": "agent.name", "model": "agent.model"}
_SETTINGS |= {"toolset": "episode.toolset", "tasks": "tasks.source"}
_SETTINGS |= {"created_at": "created_at", "settings_hash": "settings_hash"}

_READING = threading.Lock()  # so that the memory of a large record is needed once

_Number = Annotated[int, Field(ge=0, le=2**31)]
_SORTS = "|task|attempt|outcome|reason|turns|tokens|cost|duration_s|reward|started_at"
_Sort = Annotated[str, Field(pattern=f"^({_SORTS})$")]


class Run:
    """A run and its pages; the methods with the name of a page take the page's parameters.

    The caller fills `index`.

    Args:
        folder: The run's folder.
        run_id: Its name in addresses.

    Raises:
        InvalidArgumentError: The folder holds no run that can be read.
    """

    def __init__(self, folder: Path, run_id: str) -> None:
        self.id = run_id
        self.folder = folder
        self.config: Json = {}
        try:
            with open_regular(folder, CONFIG) as file:
                self.config.update(json.loads(file.read(_MAX_CONFIG_BYTES)))
            self._settings = dict(flat(self.config))
        except (OSError, ValueError, TypeError, RecursionError) as problem:
            raise InvalidArgumentError(f"{folder} holds no run: {problem!s:.300}") from None
        self.index = RunIndex(folder)
        self.tasks: Mapping[str, Task] | None = None
        self.is_live = True  # whether the summary may change by itself
        self._tasks_problem = "the tasks are still being loaded"
        self._lock = threading.Lock()
        self._summed: tuple[object, float, Json, Json] = (None, 0.0, {}, {})
        self._records: dict[int, Trajectory] = {}  # those that were read last

    def load_tasks(self) -> None:
        """Loads the run's tasks, for repositories, labels and gold patches.

        Their environments and clones are left out: making them starts programs.
        """
        names = ("source", "split", "task_ids")
        known = {name: self._settings.get(f"tasks.{name}") for name in names}
        try:
            tasks = run_tasks(RunFolder(self.folder, {"tasks": known}))
            self.index.set_tasks((task.task_id, task.repo, task.difficulty) for task in tasks)
            self._tasks_problem = "the task has changed since the run, or has no gold patch"
        except Exception as problem:  # noqa: BLE001 - a stranger's settings may break any reader
            tasks, self._tasks_problem = (), f"the tasks cannot be loaded: {problem!s:.300}"
        self.tasks = {task.task_id: task for task in tasks}
        self._summed = (None, 0.0, *self._summed[2:])  # to be computed at once
        self.is_live = True

    def summary(self) -> Json:
        """Returns the run with its counts, sums, estimates and progress."""
        return self._summary_and_facets()[0]

    def _summary_and_facets(self) -> tuple[Json, Json]:
        """Returns the summary, and the values that episodes can be filtered by.

        Both are computed again after a change, for a tenth of a processor's time at most, and by
        one thread; the others take the last ones.
        """
        if self._lock.acquire(blocking=not self._summed[2]):
            try:
                self._sum_up()
            finally:
                self._lock.release()
        return self._summed[2:]

    def _sum_up(self) -> None:
        old, due, summary, facets = self._summed
        state = (self.index.changes(), self._is_recent())
        if old != state and time.monotonic() >= due:
            start = time.thread_time()
            old, summary, facets = state, self._summarise(), self._facets()
            due = time.monotonic() + 10 * (time.thread_time() - start)
            self._summed = (old, due, summary, facets)
        self.is_live = old != state or summary["running"] or summary["indexed"] < 1

    def _is_recent(self) -> bool:
        """Returns whether an attempt was added within the last two minutes."""
        try:
            return time.time() - (self.folder / INDEX).lstat().st_mtime < _RUNNING_S
        except OSError:
            return False

    def _summarise(self) -> Json:
        counts = self.index.query(
            "SELECT count(*) FILTER (WHERE outcome != 'error') AS done, "
            "count(*) FILTER (WHERE outcome = 'resolved') AS num_resolved, "
            "count(*) FILTER (WHERE outcome = 'error') AS num_errors, total(tokens) AS tokens, "
            "sum(cost) AS cost, ifnull(avg(indexed), 1) AS indexed FROM episodes"
        )[0]
        classes = self.index.query(
            "SELECT error_class, count(*) AS rows FROM episodes WHERE outcome = 'error' "
            "GROUP BY 1 ORDER BY 2 DESC LIMIT 20"
        )
        settings = {name: argument_text(value) for name, value in self._settings.items()}
        ids, attempts = (self._settings.get(name) for name in ("tasks.task_ids", "attempts"))
        num_tasks = len(ids) if isinstance(ids, list) else 0
        attempts = max(attempts, 1) if isinstance(attempts, int) else 1
        num_left = num_tasks * attempts - counts["done"] - counts["num_errors"]
        is_running = num_left > 0 and self._is_recent()
        rate = self._rate_per_min() if is_running and counts["indexed"] == 1 else None
        return {
            "id": self.id,
            "name": settings.get("run_id") or self.id,
            **{name: settings.get(setting, "") for name, setting in _SETTINGS.items()},
            "num_tasks": num_tasks,
            "attempts": attempts,
            "planned": num_tasks * attempts,
            **counts,
            "error_classes": {row["error_class"]: row["rows"] for row in classes},
            "estimates": self._estimates(),
            "running": is_running,
            "rate_per_min": rate,
            "eta_s": 60 * num_left / rate if rate else None,
            "settings": [
                [name, value[:300]]
                for name, value in settings.items()
                if name != "tasks.task_ids" and not name.startswith("command.")
            ],
        }

    def _estimates(self) -> Json:
        """Returns the means over tasks; a measure that no attempt has is null."""
        tasks = self.index.values(
            "SELECT json_object('rows', count(*), 'resolved', avg(outcome = 'resolved'), "
            "'tokens', nullif(avg(tokens), 0), 'turns', avg(turns), 'duration_s', avg(duration_s)) "
            "AS value FROM episodes WHERE outcome != 'error' GROUP BY task"
        )
        names = ("resolved", "tokens", "turns", "duration_s")
        means = {name: [t[name] for t in tasks if t[name] is not None] for name in names}
        found = {name: mean_estimate(of) if of else None for name, of in means.items()}
        if tasks:
            found["resolved"] = rate_estimate(means["resolved"], sum(t["rows"] for t in tasks))
        return {name: _estimate(estimate) for name, estimate in found.items()}

    def _rate_per_min(self) -> float | None:
        """Returns the attempts per minute of the last ten minutes; None without any."""
        now = time.time()
        sql = "SELECT count(*) AS rows, min(ended_at) AS first FROM episodes WHERE ended_at > ?"
        row = self.index.query(sql, [now - _RATE_S])[0]
        return 60 * int(row["rows"]) / max(now - row["first"], 1) if row["rows"] else None

    def _facets(self) -> Json:
        sql = "SELECT DISTINCT {0} FROM {1} WHERE {0} != '' ORDER BY 1 LIMIT 1000"
        return {
            name: [row[name] for row in self.index.query(sql.format(name, table))]
            for name, table in _FACETS.items()
        }

    @validate_call
    def episodes(
        self,
        *,
        task: str = "",
        text: str = "",
        sort: _Sort = "",
        order: Literal["asc", "desc"] = "asc",
        offset: _Number = 0,
        limit: Annotated[int, Field(ge=0, le=MAX_EPISODES)] | None = 100,
        **equal: str,
    ) -> Json:
        """Returns rows of the table of episodes.

        Args:
            task: Only tasks whose id contains this; here and below "" means any.
            text: Only episodes with this phrase in the first two million characters of their turns:
                its words in order, whatever case; of the last word the beginning is enough.
            sort: The column to sort by; by default the start of the episodes.
            order: Ascending or descending.
            offset: How many rows to skip.
            limit: How many rows to return; None for all.
            equal: Only episodes with this repo, difficulty, outcome, stop_reason or error_class.
        """
        if unknown := equal.keys() - {*_FACETS, "outcome"}:
            raise InvalidArgumentError(f"episodes have no filter {min(unknown)!r:.100}")
        wanted = {f"{name} = ?": value for name, value in equal.items()}
        wanted["instr(lower(task), lower(?))"] = task
        phrase = text.replace("\0", " ").replace('"', '""').strip()
        wanted["id IN (SELECT rowid FROM texts WHERE texts MATCH ?)"] = phrase and f'"{phrase}" *'
        values = [clean(value) for value in wanted.values() if value]
        condition = " AND ".join(sql for sql, value in wanted.items() if value) or "1"
        key = f"{sort} IS NULL, {sort}" if sort else STARTED
        found = f"FROM {_TABLE} WHERE {condition}"
        total = self.index.query(f"SELECT count(*) AS rows {found}", values)[0]["rows"]
        rows = self.index.query(
            f"SELECT {', '.join(_COLUMNS)} {found} ORDER BY {key} {order}, id LIMIT ? OFFSET ?",
            [*values, -1 if limit is None else limit, offset],
        )
        return {
            "total": total,
            "offset": offset,
            "episodes": [{**row, "indexed": bool(row["indexed"])} for row in rows],
            "facets": self._summary_and_facets()[1],
        }

    @validate_call
    def episode(self, task: str, attempt: _Number = 0) -> Json:
        """Returns an episode with its first turns.

        Raises:
            UnknownNameError: The run has no such episode.
            InvalidArgumentError: Its record cannot be read.
        """
        row, record = self._record(task, attempt)
        same = ("agent", "model", "toolset", "seed", "error_class", "cost", "duration_s")
        return {
            "task": row["task"],
            "attempt": attempt,
            "run": self.id,
            **{name: getattr(record, name) for name in (*same, "started_at", "num_prefix_breaks")},
            "outcome": row["outcome"],
            "stop_reason": str(record.stop_reason or ""),
            "error": cut(record.error),
            "usage": dict(record.usage),
            "prompt": [{"role": m["role"], "content": cut(m["content"])} for m in _prompt(record)],
            "num_turns": len(record.turns),
            "turns": _turns(record, 0, MAX_TURNS),
            "timeline": _timeline(record),
            "patch": cut(record.patch),
            "has_gold": None if self.tasks is None else bool(self._gold(record)),
            "grade": _grade(record),
            "neighbours": self._neighbours(row),
        }

    def _record(self, task: str, attempt: int) -> tuple[Row, Trajectory]:
        """Returns the row and the record of an episode; the last two records are kept."""
        sql = "SELECT * FROM episodes WHERE task = ? AND attempt = ?"
        rows = self.index.query(sql, [clean(task), attempt])
        if not rows:
            raise UnknownNameError(f"the run has no attempt {attempt} at {task!r:.100}")
        row = rows[0]
        with _READING:
            kept = self._records
            record = kept.get(row["id"]) or self.index.read(row)
            self._records = {**dict([*kept.items()][-1:]), row["id"]: record}
        return row, record

    def _neighbours(self, row: Row) -> Json:
        """Returns the attempts at the same task, and the episodes that started next."""
        sql = "SELECT attempt FROM episodes WHERE task = ? ORDER BY 1"
        attempts = [other["attempt"] for other in self.index.query(sql, [row["task"]])]
        found: Json = {"attempts": attempts, "next": None, "previous": None}
        for name, sign, order in (("next", ">", "ASC"), ("previous", "<", "DESC")):
            for other in self.index.query(
                f"SELECT task, attempt FROM episodes WHERE ({STARTED}, id) {sign} (?, ?) "  # noqa: S608
                f"ORDER BY {STARTED} {order}, id {order} LIMIT 1",
                [row["started_at"] or "~", row["id"]],
            ):
                found[name] = [other["task"], other["attempt"]]
        return found

    @validate_call
    def turns(
        self,
        task: str,
        attempt: _Number = 0,
        start: _Number = 0,
        count: Annotated[int, Field(ge=1, le=MAX_TURNS)] = MAX_TURNS,
    ) -> Json:
        """Returns some turns of an episode; see `episode` for the errors."""
        return {"turns": _turns(self._record(task, attempt)[1], start, count)}

    @validate_call
    def text(self, task: str, path: str, attempt: _Number = 0, offset: _Number = 0) -> Json:
        """Returns the piece of a text that begins at a character; see `episode` for other errors.

        Args:
            task: The task's id.
            path: Where the text stands in the page of the episode, such as ``patch`` or
                ``turns/3/calls/0/arguments/cmd``.
            attempt: The attempt.
            offset: The character.

        Raises:
            UnknownNameError: There is no such text.
        """
        record = self._record(task, attempt)[1]
        node: Any = {
            "patch": record.patch,
            "error": record.error,
            "prompt": [message["content"] for message in _prompt(record)],
            "turns": [*zip(record.turns, thoughts(record), strict=True)],
        }
        try:
            for name in path.split("/", 5):  # the name of an argument may have slashes
                node = node[int(name)] if isinstance(node, list) else node[name]
                node = _turn(0, node[0], node[1], str) if isinstance(node, tuple) else node
        except (LookupError, ValueError, TypeError):
            node = None
        if not isinstance(node, str):
            raise UnknownNameError(f"the episode has no text {path!r:.100}")
        return {"text": node[offset : offset + _MAX_MORE], "total": len(node)}

    @validate_call
    def gold(self, task: str) -> Json:
        """Returns the gold patch of a task.

        Raises:
            UnknownNameError: It is not known; the message says why.
        """
        sql = "SELECT attempt FROM episodes WHERE task = ? AND reason != 'unreadable' LIMIT 1"
        attempts = self.index.query(sql, [clean(task)])
        gold = attempts and self._gold(self._record(task, attempts[0]["attempt"])[1])
        if not gold:
            raise UnknownNameError(f"no gold patch of {task!r:.100}: {self._tasks_problem}")
        return {"patch": cut(gold, len(gold))}

    def _gold(self, record: Trajectory) -> str:
        """Returns the gold patch of the task that was played, "" where it is not known."""
        task = (self.tasks or {}).get(record.task_id)
        if task is None:
            return ""
        digest = record.settings.get("task_digest")
        # The environments, which are not loaded, may leave out tests of a task.
        has_all = "tasks.environments" not in self._settings
        return "" if has_all and digest not in (None, task_digest(task)) else task.gold_patch

    def outcomes(self) -> dict[str, list[float]]:
        """Returns the scores of the attempts at each task, as `paired_difference` takes them."""
        tasks = self.index.values(
            "SELECT json_array(task, count(*), total(outcome = 'resolved')) AS value "
            "FROM episodes WHERE outcome != 'error' GROUP BY task"
        )
        return {task: [float(n < good) for n in range(rows)] for task, rows, good in tasks}

    def repositories(self) -> dict[str, str]:
        """Returns the repository of each task, as far as they are known."""
        sql = "SELECT json_array(task, repo) AS value FROM tasks WHERE repo != ''"
        return dict(self.index.values(sql))


class Runs:
    """The runs in some folders, by the ids that addresses use.

    Args:
        paths: Folders of runs, or folders that hold such.

    Raises:
        InvalidArgumentError: A folder does not exist.
    """

    def __init__(self, paths: Sequence[Path]) -> None:
        for path in paths:
            if not path.is_dir():
                raise InvalidArgumentError(f"{path} is no folder; name runs, or a folder of runs")
        self.paths = paths
        self.by_id: dict[str, Run] = {}
        self._states: dict[Path, object] = {}
        self.refresh()

    def refresh(self) -> None:
        """Finds runs that are new or have other settings, and forgets those that are gone."""
        configs = chain.from_iterable(
            sorted([path / CONFIG, *path.glob(f"*/{CONFIG}")]) for path in self.paths
        )
        states: dict[Path, object] = {}
        for config in configs:
            with suppress(OSError):
                now = config.stat()
                states[config.parent.resolve()] = now.st_ino, now.st_size, now.st_mtime_ns
        for run in [*self.by_id.values()]:
            if states.get(run.folder) != self._states[run.folder]:
                self.by_id.pop(run.id).index.close()
        known = {run.folder for run in self.by_id.values()}
        for folder, state in states.items():
            if folder not in known and state != self._states.get(folder):
                self._add(folder)
        self._states = states

    def _add(self, folder: Path) -> None:
        name = re.sub(r"[^A-Za-z0-9._-]+", "-", folder.name).strip(".") or "run"
        names = chain([name], (f"{name}~{number}" for number in count(2)))
        run_id = next(name for name in names if name not in self.by_id)
        with suppress(InvalidArgumentError):
            self.by_id[run_id] = Run(folder, run_id)

    def __getitem__(self, run_id: str) -> Run:
        """Returns a run.

        Raises:
            UnknownNameError: There is none of that id.
        """
        if run_id not in self.by_id:
            raise UnknownNameError(f"there is no run {run_id!r:.100}")
        return self.by_id[run_id]

    def page(self) -> Json:
        """Returns all runs, the newest first."""
        runs = [run.summary() for run in [*self.by_id.values()]]
        return {"runs": sorted(runs, key=lambda run: run["created_at"], reverse=True)}

    def close(self) -> None:
        """Removes temporary indexes."""
        for run in self.by_id.values():
            run.index.close()


def compare(a: Run, b: Run) -> Json:
    """Returns the comparison of two runs on the tasks that both have attempted.

    Raises:
        InvalidArgumentError: The runs have no task in common.
    """
    first, second = a.outcomes(), b.outcomes()
    paired = paired_difference(first, second)
    known = {**b.repositories(), **a.repositories()}
    by_repo: dict[str, list[str]] = {}
    for task in first.keys() & second.keys():
        by_repo.setdefault(known.get(task, "unknown"), []).append(task)
    names = ("p_value", "cohens_d", "num_better", "num_worse")
    return {
        "a": a.summary(),
        "b": b.summary(),
        **{name: _estimate(getattr(paired, name)) for name in ("rate_a", "rate_b", "difference")},
        **{name: getattr(paired, name) for name in names},
        "num_common": paired.difference.num_tasks,
        "num_only_a": len(first.keys() - second.keys()),
        "num_only_b": len(second.keys() - first.keys()),
        "flips": [{"task": task, "a": x, "b": y} for task, (x, y) in paired.flips.items()],
        "repositories": [
            {
                "repo": repo,
                "num_tasks": len(tasks),
                "a": _estimate(resolved_rate({task: first[task] for task in tasks})),
                "b": _estimate(resolved_rate({task: second[task] for task in tasks})),
            }
            for repo, tasks in sorted(by_repo.items())
        ],
        "warnings": setting_differences(a.config, b.config),
    }


def dumps(page: Json) -> str:
    """Returns a page as JSON of ASCII characters; numbers that JSON does not have become null."""
    try:
        return json.dumps(page, allow_nan=False)
    except ValueError:
        return json.dumps(_finite(page))


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _finite(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_finite(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def cut(text: str, most: int = _MAX_TEXT) -> Json:
    """Returns the beginning of a text, and the length of all of it."""
    return {"text": text[:most], "total": len(text)}


def _estimate(estimate: Estimate | None) -> Json:
    return {name: getattr(estimate, name, None) for name in ("value", "low", "high")}


def _prompt(record: Trajectory) -> Iterator[Json]:
    """Yields the messages before the first reply."""
    return takewhile(lambda message: message["role"] != "assistant", record.messages)


def _turns(record: Trajectory, start: int, count: int) -> list[Json]:
    turns = [*enumerate(zip(record.turns, thoughts(record), strict=True))]
    return [_turn(number, *turn, cut) for number, turn in turns[start : start + count]]


def _turn(number: int, turn: Turn, thought: str, written: Callable[[str], Any]) -> Json:
    """Returns the JSON of a turn, its texts as a function writes them."""
    calls = [
        {
            "name": call.name,
            "arguments": {k: written(argument_text(v)) for k, v in call.arguments.items()},
            "error": call.error,
            "ok": result and result.ok,
            "output": result and written(result.content),
            "duration_s": result and result.duration_s,
        }
        for call, result in zip_longest(turn.calls, turn.results[: len(turn.calls)])
    ]
    digest = hashlib.sha256(f"{turn.action}\0{turn.observation}".encode(errors="replace"))
    other = turn.observation
    for result in turn.results:
        other = other.replace(result.content, "", 1)
    model = turn.model_call and turn.model_call.to_json()
    return {
        "number": number,
        "digest": digest.hexdigest()[:12],
        "thought": written(thought),
        "action": written(turn.action),
        "calls": calls,
        "observation": written(turn.observation if other.strip() else ""),
        "reward": turn.reward,
        "reward_parts": dict(turn.reward_parts),
        "duration_s": turn.duration_s,
        "model": model
        and {k: v for k, v in model.items() if not k.startswith("p") or k == "prompt_tokens"},
    }


def _timeline(record: Trajectory) -> Json:
    """Returns tokens and seconds up to the end of each turn, rewards, and the limits."""
    limits = record.settings.get("limits")
    calls = [turn.model_call for turn in record.turns]
    tokens = [((c.prompt_tokens or 0) + (c.completion_tokens or 0)) if c else 0 for c in calls]
    return {
        "tokens": [*accumulate(tokens)] if any(tokens) else [],
        "seconds": [*accumulate(number(turn.duration_s) or 0 for turn in record.turns)],
        "rewards": [turn.reward for turn in record.turns],
        "limits": {
            name: limits.get(name) if isinstance(limits, dict) else None
            for name in ("max_turns", "max_tokens", "max_seconds")
        },
    }


_WHY = {
    "failed": "it ran and did not pass",
    "error": "its set-up or tear-down failed, or it was reported more than once",
    "skipped": "it was skipped or expected to fail",
    "missing": "it was never reported",
}


def _grade(record: Trajectory) -> Json | None:
    if record.grade is None:
        return None
    grade = record.grade.to_json()
    return {
        **{name: grade[name] for name in ("resolved", "reason", "detail", "duration_s")},
        "dropped_paths": grade["dropped_paths"],
        "tests": [
            {"test": test, "list": name, "status": status, "level": "", "why": _WHY.get(status, "")}
            for name in ("fail_to_pass", "pass_to_pass")
            for test, status in grade[name].items()
        ],
    }
