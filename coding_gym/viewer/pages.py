"""The content of the viewer's pages as JSON values, from the indexes and records of runs.

Every text of a record becomes ``{"text": its beginning, "total": its length}``, so that no page is
larger than a browser can take; `Run.text` gives the rest piece by piece.
"""

import fcntl
import hashlib
import json
import re
import sqlite3
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from itertools import accumulate, chain, count, takewhile, zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field, validate_call

from coding_gym.episode.factory import task_digest
from coding_gym.errors import InvalidArgumentError, UnknownNameError
from coding_gym.evaluation import statistics
from coding_gym.evaluation.comparison import flat, setting_differences
from coding_gym.evaluation.report import run_caveats, run_tasks
from coding_gym.grade import GradeReason
from coding_gym.rollout.run_folder import CONFIG, INDEX, LOCK, RunFolder
from coding_gym.trajectory import Trajectory, Turn
from coding_gym.viewer.index import (
    STARTED,
    Row,
    RunIndex,
    argument_text,
    open_regular,
    outcome,
    read_record,
    version,
    with_thoughts,
)

if TYPE_CHECKING:
    from coding_gym.task import Task

Json = dict[str, Any]

MAX_TURNS, MAX_EPISODES = 50, 500
"""Turns and episodes of one page."""

_MAX_TEXT, _MAX_MORE = 20_000, 50_000  # characters of a text on a page, and of a further piece
_MAX_CONFIG_BYTES = 64 << 20
_RUNNING_S, _RATE_S, _REFRESH_S = 120, 600, 5

_COLUMNS = """task, attempt, ifnull(repo, '') AS repo, ifnull(difficulty, '') AS difficulty,
outcome, reason, stop_reason, error_class, turns, tokens, cost, duration_s, reward, started_at,
indexed"""
_FACETS = {"repo": "tasks", "difficulty": "tasks"}
_FACETS |= {"stop_reason": "episodes", "error_class": "episodes"}

_SETTINGS = {"agent": "agent.name", "model": "agent.model"}
_SETTINGS |= {"toolset": "episode.toolset", "tasks": "tasks.source", "created_at": "created_at"}

_MODEL = (
    *("prompt_tokens", "completion_tokens", "cached_tokens"),
    *("cost", "duration_s", "num_retries", "finish_reason"),
)

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

    Attributes:
        tasks: The run's tasks by id; None until `load_tasks` was called.
        latest: The summary that `refresh` made last; empty before the first one.

    Raises:
        InvalidArgumentError: The folder holds no run that can be read.
    """

    def __init__(self, folder: Path, run_id: str) -> None:
        self.id = run_id
        self.folder = folder
        try:
            with open_regular(folder, CONFIG) as file:
                self.config: Json = dict(json.loads(file.read(_MAX_CONFIG_BYTES)))
            self._settings = dict(flat(self.config))
        except (OSError, ValueError, TypeError, RecursionError) as problem:
            raise InvalidArgumentError(
                f"{folder} holds no run: {problem!s:.300}; name a folder of coding-gym eval"
            ) from None
        self.index = RunIndex(folder, *map(self._settings.get, ("run_id", "created_at")))
        self.tasks: Mapping[str, Task] | None = None
        self._tasks_problem = "the tasks are still being loaded"
        self.latest: Json = {}
        self._is_changed = True  # since the last summary
        self._due = 0.0
        self._summing = threading.Lock()  # a request waits for the first sums, and makes no others

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
        except Exception as problem:  # noqa: BLE001 - hostile settings may break any reader
            tasks, self._tasks_problem = (), f"the tasks cannot be loaded: {problem!s:.300}"
        self.tasks = {task.task_id: task for task in tasks}

    def refresh(self) -> bool:
        """Continues the index by a small step, and sums the run up where it has changed.

        Sums take a tenth of a processor's time at most. Returns whether there may be more to do.
        """
        is_busy = self.index.update() or (self._is_changed and self.index.enrich())
        self._is_changed |= is_busy
        late_s = time.monotonic() - self._due
        is_old = self._is_changed
        if late_s > _REFRESH_S and not is_old:  # the rate falls, or an evaluation resumes the run
            is_old = self.latest["running"] or bool(self._is_locked())
        if is_old and late_s > 0:
            start = time.thread_time()
            with self._summing:
                self.latest, self._is_changed = self._sum_up(), is_busy
            self._due = time.monotonic() + 10 * (time.thread_time() - start)
        return is_busy

    def summary(self) -> Json:
        """Returns the run with its counts, sums, estimates and progress."""
        if self.latest:
            return self.latest
        with self._summing:
            return self.latest or self._sum_up()

    def _sum_up(self) -> Json:
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
        errors = Counter({row["error_class"]: row["rows"] for row in classes})
        head = self._head()
        agent, wanted = {"name": head["agent"]}, {"task_ids": head.pop("task_ids")}
        checked = {"agent": agent, "tasks": wanted, "attempts": head["attempts"]}
        tasks = self.by_task()
        estimates = _estimates(tasks)
        num_left = head["planned"] - counts["done"] - counts["num_errors"]
        is_running = self._is_locked()
        if is_running is None:
            is_running = num_left > 0 and self._is_growing(estimates["duration_s"]["value"] or 0)
        rate = self._rate_per_min() if is_running and counts["indexed"] == 1 else None
        return {
            **head,
            **counts,
            "error_classes": errors,
            "estimates": estimates,
            "caveats": [*run_caveats(checked, _scores(tasks), errors)],
            "running": is_running,
            "rate_per_min": rate,
            "eta_s": 60 * num_left / rate if rate and num_left > 0 else None,
        }

    def _head(self) -> Json:
        """Returns what the settings say of the run, whatever their types are."""
        settings = {name: argument_text(value) for name, value in self._settings.items()}
        ids, attempts = (self._settings.get(name) for name in ("tasks.task_ids", "attempts"))
        ids = [task for task in ids if isinstance(task, str)] if isinstance(ids, list) else []
        attempts = max(attempts, 1) if isinstance(attempts, int) else 1
        return {
            "id": self.id,
            "name": settings.get("run_id") or self.id,
            **{name: settings.get(setting, "") for name, setting in _SETTINGS.items()},
            "task_ids": ids,
            "num_tasks": len(ids),
            "attempts": attempts,
            "planned": len(ids) * attempts,
            "settings": [
                [name, value[:300]]
                for name, value in settings.items()
                if name != "tasks.task_ids" and not name.startswith("command.")
            ],
        }

    def _is_locked(self) -> bool | None:
        """Returns whether an evaluation holds the folder's lock; None where locks do not work."""
        try:
            with open_regular(self.folder, LOCK) as file:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)  # until the file is closed
        except BlockingIOError:
            return True
        except FileNotFoundError:
            return False
        except OSError:
            return None
        return False

    def _is_growing(self, attempt_s: float) -> bool:
        """Returns whether an attempt ended a short while ago; one takes that long on average."""
        return version(self.folder / INDEX)[0] > time.time() - max(_RUNNING_S, 5 * attempt_s)

    def by_task(self) -> dict[str, Json]:
        """Returns the attempts with a verdict at each task, and their means."""
        # One row of JSON: sqlite would wait for the interpreter's lock at each row.
        sql = """
            SELECT json_group_object(task, json_object('repo', repo, 'rows', n,
                'num_resolved', good, 'tokens', used, 'turns', turns, 'duration_s', spent)) AS found
            FROM (SELECT task, count(*) AS n, sum(outcome = 'resolved') AS good,
                nullif(avg(tokens), 0) AS used, avg(turns) AS turns, avg(duration_s) AS spent
                FROM episodes WHERE outcome != 'error' GROUP BY task)
            LEFT JOIN tasks USING (task)"""
        return dict(json.loads(self.index.query(sql)[0]["found"]))

    def _rate_per_min(self) -> float | None:
        """Returns the attempts per minute of the last ten minutes; None below two."""
        now = time.time()
        sql = (
            "SELECT count(*) AS rows, min(began) AS first FROM (SELECT duration_s, "
            "86400 * (julianday(started_at) - 2440587.5) AS began FROM episodes) "
            "WHERE began + duration_s > ?"
        )
        row = self.index.query(sql, [now - _RATE_S])[0]
        if row["rows"] < 2:
            return None
        return 60 * int(row["rows"]) / max(min(_RATE_S, now - float(row["first"])), 1)

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
        values = [value for value in wanted.values() if value]
        condition = " AND ".join(sql for sql, value in wanted.items() if value) or "1"
        key = f"{sort} IS NULL, {sort}" if sort else STARTED
        found = f"FROM episodes LEFT JOIN tasks USING (task) WHERE {condition}"
        total = self.index.query(f"SELECT count(*) AS rows {found}", values)[0]["rows"]
        rows = self.index.query(
            f"SELECT {_COLUMNS} {found} ORDER BY {key} {order}, id LIMIT ? OFFSET ?",
            [*values, -1 if limit is None else limit, offset],
        )
        return {
            "total": total,
            "offset": offset,
            "episodes": rows,
            "facets": self._facets(),
        }

    @validate_call
    def episode(self, task: str, attempt: _Number = 0) -> Json:
        """Returns an episode with its first turns.

        Raises:
            UnknownNameError: The run has no such episode.
            InvalidArgumentError: Its record cannot be read.
        """
        record = self._record(task, attempt)
        same = ("agent", "model", "toolset", "seed", "error_class", "cost", "duration_s")
        return {
            "task": task,
            "attempt": attempt,
            "run": self.id,
            **{name: getattr(record, name) for name in (*same, "started_at", "num_prefix_breaks")},
            "outcome": outcome(record),
            "stop_reason": str(record.stop_reason or ""),
            "error": cut(record.error),
            "usage": dict(record.usage),
            "prompt": [{"role": m["role"], "content": cut(m["content"])} for m in _prompt(record)],
            "num_turns": len(record.turns),
            "turns": _turns(record, 0),
            "timeline": _timeline(record),
            "patch": cut(record.patch),
            "has_gold": None if self.tasks is None else bool(self._gold(record)),
            "grade": _grade(record),
            "neighbours": self._neighbours(self._row(task, attempt)),
        }

    def _row(self, task: str, attempt: int) -> Row:
        sql = "SELECT * FROM episodes WHERE task = ? AND attempt = ?"
        rows = self.index.query(sql, [task, attempt])
        if not rows:
            sql = "SELECT attempt FROM episodes WHERE task = ? ORDER BY 1"
            known = ", ".join(str(row["attempt"]) for row in self.index.query(sql, [task]))
            raise UnknownNameError(
                f"the run has no attempt {attempt} at {task!r:.100}, only {known or 'none'}"
            )
        return rows[0]

    def _record(self, task: str, attempt: int) -> Trajectory:
        row = self._row(task, attempt)
        with _READING:
            return _read_kept(self.folder, (*row.items(),), version(self.folder / row["file"]))

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
    def turns(self, task: str, attempt: _Number = 0, start: _Number = 0) -> Json:
        """Returns up to 50 turns of an episode; see `episode` for the errors."""
        return {"turns": _turns(self._record(task, attempt), start)}

    @validate_call
    def text(self, task: str, path: str, attempt: _Number = 0, offset: _Number = 0) -> Json:
        """Returns the piece of a text that begins at a character; see `episode` for other errors.

        The path says where the text stands in the page of the episode, such as ``patch`` or
        ``turns/3/calls/0/arguments/cmd``.

        Raises:
            UnknownNameError: There is no such text.
        """
        record = self._record(task, attempt)
        node: Any = {
            "patch": record.patch,
            "error": record.error,
            "prompt": [message["content"] for message in _prompt(record)],
            "turns": with_thoughts(record),
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
    def gold(self, task: str, attempt: _Number = 0) -> Json:
        """Returns the gold patch of the task of an episode; see `episode` for other errors.

        Raises:
            UnknownNameError: It is not known; the message says why.
        """
        gold = self._gold(self._record(task, attempt))
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


class Runs:
    """The runs in some folders, by the ids that addresses use.

    Args:
        paths: Folders of runs, or folders that contain them.

    Attributes:
        by_id: The runs.
        gone: The last summaries of runs whose folder was removed.
        problems: Why other folders with settings are no runs.

    Raises:
        InvalidArgumentError: A folder does not exist.
    """

    def __init__(self, paths: Sequence[Path]) -> None:
        for path in paths:
            if not path.is_dir():
                raise InvalidArgumentError(f"{path} is no folder; name runs, or a folder of runs")
        self.paths = paths
        self.by_id: dict[str, Run] = {}
        self.gone: dict[str, Json] = {}
        self.problems: dict[Path, str] = {}
        self._found: dict[Path, tuple[float, int, int]] = {}  # versions of the settings
        self.refresh()

    def refresh(self) -> None:
        """Finds runs that are new or have other settings, and forgets those that are gone."""
        configs = [c for path in self.paths for c in (path / CONFIG, *path.glob(f"*/{CONFIG}"))]
        found = {c.parent.resolve(): version(c) for c in sorted(configs) if c.exists()}
        same = {folder for folder, state in found.items() if state == self._found.get(folder)}
        by_id = {run.id: run for run in self.by_id.values() if run.folder in same}
        for folder in found:
            if folder not in same:
                name = re.sub(r"[^A-Za-z0-9._-]+", "-", folder.name).strip(".") or "run"
                names = chain([name], (f"{name}~{number}" for number in count(2)))
                run_id = next(name for name in names if name not in by_id)
                self.problems.pop(folder, None)
                try:
                    by_id[run_id] = Run(folder, run_id)
                except InvalidArgumentError as problem:
                    self.problems[folder] = str(problem)
        lost = {"gone": True, "running": False, "caveats": ["The folder of this run is gone."]}
        gone = self.gone | {run.id: run.latest | lost for run in self.by_id.values() if run.latest}
        self.gone = {run_id: run for run_id, run in gone.items() if run_id not in by_id}
        self.by_id, self._found = by_id, found

    def __getitem__(self, run_id: str) -> Run:
        """Returns a run.

        Raises:
            UnknownNameError: There is none of that id.
        """
        if run_id not in self.by_id:
            raise UnknownNameError(f"there is no run {run_id!r:.100}")
        return self.by_id[run_id]

    def page(self) -> Json:
        """Returns all runs, the newest first; those whose index cannot be read are left out."""
        runs = []
        for run in self.by_id.values():
            with suppress(sqlite3.Error, OSError):
                runs.append(run.summary())
        return {"runs": sorted(runs, key=lambda run: run["created_at"], reverse=True)}


def compare(a: Run, b: Run) -> Json:
    """Returns the comparison of two runs on the tasks that both have attempted.

    Raises:
        InvalidArgumentError: The runs have no task in common.
    """
    first, second = a.by_task(), b.by_task()
    scores_a, scores_b = _scores(first), _scores(second)
    paired = statistics.paired_difference(scores_a, scores_b)
    by_repo: dict[str, list[str]] = {}
    for task in first.keys() & second.keys():
        repo = first[task]["repo"] or second[task]["repo"] or "unknown"
        by_repo.setdefault(repo, []).append(task)
    return {
        "a": a.summary(),
        "b": b.summary(),
        **paired.to_json(),
        "num_only_a": len(first.keys() - second.keys()),
        "num_only_b": len(second.keys() - first.keys()),
        "flips": [{"task": task, "a": x, "b": y} for task, (x, y) in paired.flips.items()],
        "repositories": [
            {
                "repo": repo,
                "num_tasks": len(tasks),
                **{
                    name: statistics.resolved_rate({task: of[task] for task in tasks}).to_json()
                    for name, of in (("a", scores_a), ("b", scores_b))
                },
            }
            for repo, tasks in sorted(by_repo.items())
        ],
        "warnings": setting_differences(a.config, b.config),
    }


def _estimates(tasks: Mapping[str, Json]) -> dict[str, Json]:
    """Returns the means over tasks; those of a measure that no attempt has are null."""
    found = {"resolved": statistics.resolved_rate(_scores(tasks)) if tasks else None}
    for name in ("tokens", "turns", "duration_s"):
        means = [task[name] for task in tasks.values() if task[name] is not None]
        found[name] = statistics.mean_estimate(means) if means else None
    return {name: one.to_json() if one else {"value": None} for name, one in found.items()}


def _scores(tasks: Mapping[str, Json]) -> dict[str, list[float]]:
    """Returns the scores of the attempts at each task."""
    return {
        name: [float(number < task["num_resolved"]) for number in range(task["rows"])]
        for name, task in tasks.items()
    }


def dumps(page: Json) -> str:
    """Returns a page as JSON of ASCII characters; numbers that JSON does not have become null."""
    try:
        return json.dumps(page, allow_nan=False)
    except ValueError:
        return json.dumps(json.loads(json.dumps(page), parse_constant=lambda _: None))


def cut(text: str, most: int = _MAX_TEXT) -> Json:
    """Returns the beginning of a text, and the length of all of it."""
    return {"text": text[:most], "total": len(text)}


@lru_cache(maxsize=2)
def _read_kept(folder: Path, row: tuple[tuple[str, Any], ...], _version: object) -> Trajectory:
    """Returns a record, from memory where its file is as it was."""
    return read_record(folder, dict(row))


def _prompt(record: Trajectory) -> Iterator[Json]:
    """Yields the messages before the first reply."""
    return takewhile(lambda message: message["role"] != "assistant", record.messages)


def _turns(record: Trajectory, start: int) -> list[Json]:
    turns = [*enumerate(with_thoughts(record))]
    return [_turn(number, *turn, cut) for number, turn in turns[start : start + MAX_TURNS]]


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
        "model": turn.model_call and {name: getattr(turn.model_call, name) for name in _MODEL},
    }


def _timeline(record: Trajectory) -> Json:
    """Returns tokens and seconds up to the end of each turn, rewards, and the limits."""
    limits = record.settings.get("limits")
    limits = limits if isinstance(limits, dict) else {}
    calls = [turn.model_call for turn in record.turns]
    tokens = [((c.prompt_tokens or 0) + (c.completion_tokens or 0)) if c else 0 for c in calls]
    return {
        "tokens": [*accumulate(tokens)] if any(tokens) else [],
        "seconds": [*accumulate(turn.duration_s for turn in record.turns)],
        "rewards": [turn.reward for turn in record.turns],
        "limits": {name: limits.get(name) for name in ("max_turns", "max_tokens", "max_seconds")},
    }


_WHY = {
    "failed": "it ran and did not pass",
    "error": "its set-up or tear-down failed, or it was reported more than once",
    "skipped": "it was skipped",
    "xfailed": "it was expected to fail",
    "missing": "it was never reported",
}


def _grade(record: Trajectory) -> Json | None:
    if record.grade is None:
        return None
    grade = {**record.grade.to_json(), "challenge": record.grade.challenge}
    lists = {name: grade.pop(name) for name in ("fail_to_pass", "pass_to_pass")}
    is_tampered = record.grade.reason is GradeReason.TAMPERED
    why = "results of a run that was tampered with do not count" if is_tampered else ""
    tests = [
        {"test": test, "list": name, "status": status, "why": why or _WHY.get(status, "")}
        for name, statuses in lists.items()
        for test, status in statuses.items()
    ]
    return {**grade, "tests": tests}
