"""The content of the viewer's pages as JSON values, from the indexes and records of runs.

Every text of a record becomes ``{"text": its beginning, "total": its length}``, so that no page is
larger than a browser can take; `Run.text` gives the rest piece by piece.
"""

import hashlib
import itertools
import json
import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

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
from coding_gym.viewer.index import Row, RunIndex, argument_text, clean, open_regular
from coding_gym.viewer.index import thoughts as thoughts_of

if TYPE_CHECKING:
    from coding_gym.task import Task

Json = dict[str, Any]

MAX_TEXT, MAX_MORE = 20_000, 50_000
"""Characters of a text on a page, and of each further piece."""

MAX_TURNS, MAX_EPISODES = 50, 500
"""Turns and episodes of one answer."""

_MAX_CONFIG_BYTES = 64 << 20
_MAX_KEPT_BYTES = 32 << 20  # of records, to turn the pages of
_RUNNING_S, _RATE_S = 120, 600

_COLUMNS = (
    *("task", "attempt", "repo", "difficulty", "outcome", "reason", "stop_reason", "error_class"),
    *("turns", "tokens", "cost", "duration_s", "reward", "started_at", "indexed"),
)
_SORTS = {name: name for name in _COLUMNS if name not in ("repo", "difficulty", "indexed")}
_FACETS = ("repo", "difficulty", "stop_reason", "error_class")
_FILTERS = (*_FACETS, "outcome")
_TABLE = "episodes LEFT JOIN tasks USING (task)"
_STARTED = "coalesce(started_at, '~')"  # behind all dates
_MEASURES = ("tokens", "turns", "duration_s")


class Run:
    """A run whose index is filled, by calls of `step` or at once.

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
        self._config_state: tuple[int, ...] = ()
        self.reload()
        self.index = RunIndex(folder)
        self.tasks: Mapping[str, Task] | None = None
        self.tasks_problem = "the tasks are still being loaded"
        self._summary: tuple[object, float, Json, Json] = (None, 0.0, {}, {})
        self._lock = threading.Lock()
        self._records: dict[int, Trajectory] = {}
        self._sizes: dict[int, int] = {}

    def reload(self) -> None:
        """Reads ``config.json`` if it has changed, as it does when a run is continued.

        Raises:
            InvalidArgumentError: It cannot be read.
        """
        try:
            state = (self.folder / CONFIG).stat()
            seen = (state.st_ino, state.st_size, state.st_mtime_ns)
            if seen == self._config_state:
                return
            with open_regular(self.folder, CONFIG) as file:
                config = json_object(file.read(_MAX_CONFIG_BYTES))
        except (OSError, ValueError, RecursionError) as problem:
            raise InvalidArgumentError(f"{self.folder} holds no run: {problem}") from None
        self.config, self._config_state = config, seen

    def load_tasks(self) -> None:
        """Loads the run's tasks, for repositories, labels and gold patches.

        Their environments and repositories are left alone: making them starts programs.
        """
        source = _setting(self.config, "tasks", kind=dict)
        source = {name: source[name] for name in ("source", "split", "task_ids") if name in source}
        try:
            tasks = run_tasks(RunFolder(self.folder, {"tasks": source}))
        except Exception as problem:  # noqa: BLE001 - a stranger's settings may break any reader
            self.tasks, self.tasks_problem = {}, f"the tasks cannot be loaded: {problem!s:.300}"
            return
        self.tasks, self.tasks_problem = {task.task_id: task for task in tasks}, ""
        self.index.set_tasks((t.task_id, t.repo, t.difficulty) for t in tasks)

    def summary(self) -> Json:
        """Returns the run with its counts, sums, estimates and progress."""
        return self._summed()[0]

    def _summed(self) -> tuple[Json, Json]:
        """Returns the summary and the facets.

        They are computed again after a change, but not during more than a tenth of the time.
        """
        with self._lock:
            state = (self.index.changes(), self._config_state, self._is_recent())
            old, due, summary, facets = self._summary
            start = time.monotonic()
            if old != state and start >= due:
                summary, facets = self._summarise(), self._facets()
                spent = time.monotonic() - start
                self._summary = (state, start + 10 * spent, summary, facets)
            return summary, facets

    def _is_recent(self) -> bool:
        """Returns whether an attempt was added within the last two minutes."""
        try:
            return time.time() - (self.folder / INDEX).stat().st_mtime < _RUNNING_S
        except OSError:
            return False

    def _summarise(self) -> Json:
        config = self.config
        counts = self.index.query(
            "SELECT count(*) AS rows, total(outcome = 'resolved') AS resolved, "
            "total(outcome = 'error') AS errors, total(tokens) AS tokens, sum(cost) AS cost, "
            "total(indexed) AS indexed FROM episodes"
        )[0]
        classes = self.index.query(
            "SELECT error_class, count(*) AS rows FROM episodes WHERE outcome = 'error' "
            "GROUP BY error_class ORDER BY rows DESC"
        )
        num_tasks = len(_setting(config, "tasks", "task_ids", kind=list))
        attempts = _setting(config, "attempts", kind=int) or 1
        errors = int(counts["errors"])
        done, planned = counts["rows"] - errors, num_tasks * attempts
        is_running = self._is_recent() and counts["rows"] < planned
        rate = self._rate() if is_running else None
        return {
            "id": self.id,
            "name": _setting(config, "run_id") or self.id,
            "agent": _setting(config, "agent", "name"),
            "model": _setting(config, "agent", "model"),
            "toolset": _setting(config, "episode", "toolset"),
            "tasks": _setting(config, "tasks", "source"),
            "num_tasks": num_tasks,
            "attempts": attempts,
            "planned": planned,
            "done": done,
            "num_resolved": int(counts["resolved"]),
            "num_errors": errors,
            "error_classes": {row["error_class"]: row["rows"] for row in classes},
            "estimates": self._estimates(),
            "tokens": int(counts["tokens"]),
            "cost": counts["cost"],
            "created_at": _setting(config, "created_at"),
            "running": is_running,
            "rate_per_min": rate,
            "eta_s": 60 * (planned - counts["rows"]) / rate if rate else None,
            "indexed": counts["indexed"] / counts["rows"] if counts["rows"] else 1.0,
            "settings": list(_settings(config)),
            "settings_hash": _setting(config, "settings_hash"),
        }

    def _estimates(self) -> Json:
        """Returns the means over tasks of the measures that are known."""
        rows = self.index.query(
            "SELECT count(*) AS rows, avg(outcome = 'resolved') AS resolved, avg(tokens) AS "
            "tokens, avg(turns) AS turns, avg(duration_s) AS duration_s FROM episodes "
            "WHERE outcome != 'error' GROUP BY task"
        )
        rates = [row["resolved"] for row in rows]
        num_attempts = sum(row["rows"] for row in rows)
        found = {"resolved": _estimate(rate_estimate(rates, num_attempts) if rates else None)}
        for name in _MEASURES:
            means = [row[name] for row in rows if row[name] is not None]
            if name == "tokens" and not any(means):  # nothing counted them
                means = []
            found[name] = _estimate(mean_estimate(means) if means else None)
        return found

    def _rate(self) -> float | None:
        """Returns the attempts per minute of the last ten minutes; None where not yet known."""
        row = self.index.query(
            "SELECT count(*) AS rows, min(ended_at) AS first FROM episodes WHERE ended_at > ?",
            (time.time() - _RATE_S,),
        )[0]
        if not row["rows"]:
            return None
        seconds = max(time.time() - row["first"], 1.0)
        return 60.0 * int(row["rows"]) / seconds

    def _facets(self) -> Json:
        """Returns the values of each column that rows can be filtered by."""
        return {
            name: [
                row[name]
                for row in self.index.query(
                    f"SELECT DISTINCT {name} FROM {_TABLE} WHERE {name} != '' ORDER BY 1 LIMIT 1000"  # noqa: S608
                )
            ]
            for name in _FACETS
        }

    def episodes(
        self,
        *,
        task: str = "",
        text: str = "",
        sort: str = "",
        order: str = "asc",
        offset: int = 0,
        limit: int | None = 100,
        **equal: str,
    ) -> Json:
        """Returns rows of the table of episodes.

        Args:
            task: Only tasks whose id contains this.
            text: Only episodes with this phrase in their turns: its words in order, whatever case.
            sort: The column to sort by; by default episodes are in the order of their start.
            order: ``"asc"`` or ``"desc"``.
            offset: How many rows to skip.
            limit: How many rows to return; None for all.
            equal: Values of repo, difficulty, outcome, stop_reason or error_class; "" for any.

        Raises:
            InvalidArgumentError: There is no such column or order.
        """
        if sort not in ("", *_SORTS) or order not in ("asc", "desc"):
            raise InvalidArgumentError(
                f"sort must be one of {', '.join(_SORTS)} and order asc or desc, got {sort!r} and "
                f"{order!r}"
            )
        wanted = {name: equal.get(name, "") for name in _FILTERS}
        where = [f"{name} = ?" for name, value in wanted.items() if value]
        values: list[object] = [clean(value) for value in wanted.values() if value]
        if task:
            where.append("instr(lower(task), lower(?))")
            values.append(clean(task))
        if text.strip():
            phrase = clean(text).replace("\0", " ").replace('"', '""')
            where.append("id IN (SELECT rowid FROM texts WHERE texts MATCH ?)")
            values.append(f'"{phrase}" *')
        condition = f"WHERE {' AND '.join(where)}" if where else ""
        key = f"{sort} IS NULL, {sort} {order}" if sort else f"{_STARTED} {order}"
        total = self.index.query(f"SELECT count(*) AS rows FROM {_TABLE} {condition}", values)  # noqa: S608
        rows = self.index.query(
            f"SELECT {', '.join(_COLUMNS)} FROM {_TABLE} {condition} ORDER BY {key}, id "  # noqa: S608
            "LIMIT ? OFFSET ?",
            [*values, -1 if limit is None else limit, between("offset", offset)],
        )
        return {
            "total": total[0]["rows"],
            "offset": offset,
            "episodes": [_episode_row(row) for row in rows],
            "facets": self._summed()[1],
        }

    def record(self, task: str, attempt: int) -> tuple[Row, Trajectory]:
        """Returns the row and the record of an episode.

        Records that were read last are kept, so that the pages of a long episode come quickly.

        Raises:
            UnknownNameError: The run has no such episode.
            InvalidArgumentError: Its record cannot be read.
        """
        row = self.index.row(task, between("attempt", attempt))
        with self._lock:
            record = self._records.pop(row["id"], None)
        if record is None:
            record = self.index.read(row)
        with self._lock:
            self._records[row["id"]] = record
            self._sizes[row["id"]] = row["length"]
            while len(self._records) > 1 and self._kept_bytes() > _MAX_KEPT_BYTES:
                del self._records[next(iter(self._records))]
        return row, record

    def _kept_bytes(self) -> int:
        return sum(self._sizes[row_id] for row_id in self._records)

    def episode(self, task: str, attempt: int) -> Json:
        """Returns one episode with its first turns; see `record` for the errors."""
        row, record = self.record(task, attempt)
        return {
            "task": row["task"],
            "attempt": attempt,
            "run": self.id,
            "agent": record.agent,
            "model": record.model,
            "toolset": record.toolset,
            "seed": record.seed,
            "outcome": row["outcome"],
            "stop_reason": str(record.stop_reason or ""),
            "error": cut(record.error),
            "error_class": record.error_class,
            "usage": dict(record.usage),
            "cost": record.cost,
            "duration_s": record.duration_s,
            "started_at": record.started_at,
            "num_prefix_breaks": record.num_prefix_breaks,
            "prompt": [
                {"role": message["role"], "content": cut(message["content"])}
                for message in _prompt(record)
            ],
            "num_turns": len(record.turns),
            "turns": _turns(record, 0, MAX_TURNS),
            "timeline": _timeline(record),
            "patch": cut(record.patch),
            "has_gold": None if self.tasks is None else self._gold(record) is not None,
            "grade": _grade(record),
            "neighbours": self._neighbours(row),
        }

    def _neighbours(self, row: Row) -> Json:
        attempts = self.index.query(
            "SELECT attempt FROM episodes WHERE task = ? ORDER BY 1", [row["task"]]
        )
        place = [row["started_at"] or "~", row["id"]]
        found: Json = {"attempts": [other["attempt"] for other in attempts]}
        for name, sign, order in (("next", ">", "ASC"), ("previous", "<", "DESC")):
            others = self.index.query(
                f"SELECT task, attempt FROM episodes WHERE ({_STARTED}, id) {sign} (?, ?) "  # noqa: S608
                f"ORDER BY {_STARTED} {order}, id {order} LIMIT 1",
                place,
            )
            found[name] = [*others[0].values()] if others else None
        return found

    def turns(self, task: str, attempt: int, start: int, count: int = MAX_TURNS) -> Json:
        """Returns some turns of an episode; see `record` for the errors."""
        start, count = between("start", start), between("count", count, 1, MAX_TURNS)
        return {"turns": _turns(self.record(task, attempt)[1], start, count)}

    def text(self, task: str, attempt: int, path: str, offset: int) -> Json:
        """Returns the next piece of a text of an episode; see `record` for other errors.

        Args:
            task: The task's id.
            attempt: The attempt.
            path: Where the text stands in the page of the episode, such as
                ``turns/3/calls/0/output``.
            offset: Characters that are known already.

        Raises:
            UnknownNameError: There is no such text.
        """
        offset = between("offset", offset)
        text = _text_at(self.record(task, attempt)[1], path)
        return {"text": text[offset : offset + MAX_MORE], "total": len(text)}

    def gold(self, task: str) -> Json:
        """Returns the gold patch of a task.

        Raises:
            UnknownNameError: It is not known; the message says why.
        """
        rows = self.index.query(
            "SELECT attempt FROM episodes WHERE task = ? LIMIT 1", [clean(task)]
        )
        record = self.record(task, rows[0]["attempt"])[1] if rows else Trajectory(task_id=task)
        gold = self._gold(record)
        if gold is None:
            problem = self.tasks_problem or "the task has changed since the run, or has none"
            raise UnknownNameError(f"the gold patch of {task!r} is not known: {problem}")
        return {"patch": cut(gold, len(gold))}

    def _gold(self, record: Trajectory) -> str | None:
        """Returns the gold patch of an episode's task, if the task is the one that was played."""
        task = (self.tasks or {}).get(record.task_id)
        if task is None or not task.gold_patch:
            return None
        digest = record.settings.get("task_digest")
        # The environment, which is not loaded, may leave out tests of the task.
        is_whole = "environments" not in _setting(self.config, "tasks", kind=dict)
        is_other = is_whole and digest is not None and digest != task_digest(task)
        return None if is_other else task.gold_patch

    def outcomes(self) -> dict[str, list[float]]:
        """Returns the scores of the attempts at each task, as `statistics` takes them."""
        rows = self.index.query(
            "SELECT task, count(*) AS rows, total(outcome = 'resolved') AS resolved FROM episodes "
            "WHERE outcome != 'error' GROUP BY task"
        )
        return {
            row["task"]: [float(n < row["resolved"]) for n in range(row["rows"])] for row in rows
        }

    def repositories(self) -> dict[str, str]:
        """Returns the repository of each task, as far as they are known."""
        rows = self.index.query("SELECT task, repo FROM tasks WHERE repo != ''")
        return {row["task"]: row["repo"] for row in rows}


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
        self._by_folder: dict[Path, Run] = {}
        self.by_id: dict[str, Run] = {}
        self.refresh()

    def refresh(self) -> None:
        """Finds runs that are new, forgets those that are gone, and reads changed settings."""
        for run in [*self._by_folder.values()]:
            try:
                run.reload()
            except InvalidArgumentError:
                del self._by_folder[run.folder], self.by_id[run.id]
                run.index.close()
        for path in self.paths:
            is_run = (path / CONFIG).exists()
            for config in [path / CONFIG] if is_run else sorted(path.glob(f"*/{CONFIG}")):
                self._add(config.parent.resolve())

    def _add(self, folder: Path) -> None:
        if folder in self._by_folder:
            return
        name = re.sub(r"[^A-Za-z0-9._-]+", "-", folder.name).strip(".") or "run"
        numbers = itertools.count(2)
        run_id = name
        while run_id in self.by_id:
            run_id = f"{name}~{next(numbers)}"
        try:
            run = Run(folder, run_id)
        except InvalidArgumentError:
            return
        self._by_folder[folder] = self.by_id[run_id] = run

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
    common = first.keys() & second.keys()
    known = {**b.repositories(), **a.repositories()}
    by_repo: dict[str, list[str]] = {}
    for task in sorted(common):
        by_repo.setdefault(known.get(task, "unknown"), []).append(task)
    return {
        "a": a.summary(),
        "b": b.summary(),
        "rate_a": _estimate(paired.rate_a),
        "rate_b": _estimate(paired.rate_b),
        "difference": _estimate(paired.difference),
        "p_value": paired.p_value,
        "cohens_d": paired.cohens_d,
        "num_common": len(common),
        "num_only_a": len(first.keys() - common),
        "num_only_b": len(second.keys() - common),
        "num_better": paired.num_better,
        "num_worse": paired.num_worse,
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


def between(name: str, value: int, least: int = 0, most: int = 2**31) -> int:
    """Returns a number that a request names, if it is in its bounds.

    Raises:
        InvalidArgumentError: It is not.
    """
    if not least <= value <= most:
        raise InvalidArgumentError(f"{name} must be {least} to {most}, got {value}")
    return value


def cut(text: str, most: int = MAX_TEXT) -> Json:
    """Returns the beginning of a text, and the length of all of it."""
    return {"text": text[:most], "total": len(text)}


def json_object(content: bytes) -> Json:
    """Reads a JSON object.

    Raises:
        ValueError: The content is none.
    """
    value = json.loads(content)
    if not isinstance(value, dict):
        raise ValueError("it is no JSON object")
    return value


def _setting(config: Json, *names: str, kind: type[Any] = str) -> Any:
    """Returns an entry of a run's settings, or an empty value if it is missing or of another type.

    Args:
        config: The settings, which may hold anything.
        names: The keys that lead to it.
        kind: Its type.
    """
    value: Any = config
    for name in names:
        value = value.get(name) if isinstance(value, dict) else None
    return value if isinstance(value, kind) else kind()


def _settings(config: Json) -> Iterator[list[str]]:
    """Yields the name and value of all settings that a reader may want to see."""
    shown = {name: value for name, value in config.items() if name != "command"}
    for name, value in flat(shown):
        if name == "tasks.task_ids":
            continue
        yield [name, argument_text(value)[:300]]


def _estimate(estimate: Estimate | None) -> Json:
    return {name: getattr(estimate, name, None) for name in ("value", "low", "high")}


def _episode_row(row: Row) -> Json:
    return {**row, "indexed": bool(row["indexed"])}


def _prompt(record: Trajectory) -> list[Mapping[str, Any]]:
    """Returns the messages before the first assistant message."""
    return [*itertools.takewhile(lambda m: m["role"] != "assistant", record.messages)]


def _turns(record: Trajectory, start: int, count: int) -> list[Json]:
    said = thoughts_of(record)
    turns = [*enumerate(zip(record.turns, said, strict=True))][start : start + count]
    return [_turn(number, turn, thought, cut) for number, (turn, thought) in turns]


def _turn(position: int, turn: Turn, thought: str, written: Callable[[str], Any]) -> Json:
    """Returns the JSON of a turn, its texts as a function writes them."""
    calls = []
    for call, result in itertools.zip_longest(turn.calls, turn.results[: len(turn.calls)]):
        arguments = {name: argument_text(value) for name, value in call.arguments.items()}
        calls.append(
            {
                "name": call.name,
                "arguments": {name: written(value) for name, value in arguments.items()},
                "error": call.error,
                "ok": result and result.ok,
                "output": result and written(result.content),
                "duration_s": result and result.duration_s,
            }
        )
    digest = hashlib.sha256(f"{turn.action}\0{turn.observation}".encode(errors="replace"))
    outputs = "".join(result.content for result in turn.results)
    is_output = "".join(turn.observation.split()) == "".join(outputs.split())
    model = turn.model_call
    names = ("prompt_tokens", "completion_tokens", "cached_tokens", "cost", "duration_s")
    return {
        "number": position,
        "digest": digest.hexdigest()[:12],
        "thought": written(thought),
        "action": written(turn.action),
        "calls": calls,
        "observation": written("" if is_output else turn.observation),
        "reward": turn.reward,
        "reward_parts": dict(turn.reward_parts),
        "duration_s": turn.duration_s,
        "model": model
        and {name: getattr(model, name) for name in (*names, "num_retries", "finish_reason")},
    }


def _text_at(record: Trajectory, path: str) -> str:
    """Returns a whole text of an episode's page, by its place in the page's JSON."""
    kind, *rest = path.split("/")
    try:
        node: Any = {"patch": record.patch, "error": record.error}
        if kind == "prompt":
            node, rest = [message["content"] for message in _prompt(record)], rest
        elif kind == "turns":
            position = int(rest.pop(0))
            thought = thoughts_of(record)[position]
            node = _turn(position, record.turns[position], thought, str)
        else:
            rest = [kind]
        if "arguments" in rest[2:3]:  # a name may have slashes
            rest = [*rest[:3], "/".join(rest[3:])]
        for name in rest:
            node = node[int(name)] if isinstance(node, list) else node[name]
    except (LookupError, ValueError, TypeError):
        node = None
    if not isinstance(node, str):
        raise UnknownNameError(f"the episode has no text {path!r:.100}")
    return node


def _timeline(record: Trajectory) -> Json:
    """Returns tokens and seconds up to the end of each turn, and its reward."""
    limits = record.settings.get("limits")
    calls = [turn.model_call for turn in record.turns]
    tokens = [((c.prompt_tokens or 0) + (c.completion_tokens or 0)) if c else 0 for c in calls]
    return {
        "tokens": [*itertools.accumulate(tokens)] if any(tokens) else [],
        "seconds": [*itertools.accumulate(turn.duration_s for turn in record.turns)],
        "rewards": [turn.reward for turn in record.turns],
        "limits": {
            name: limits.get(name) if isinstance(limits, Mapping) else None
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
    grade = record.grade
    if grade is None:
        return None
    return {
        "resolved": grade.resolved,
        "reason": str(grade.reason),
        "detail": grade.detail,
        "duration_s": grade.duration_s,
        "dropped_paths": list(grade.dropped_paths),
        "tests": [
            {"test": test, "list": name, "status": str(status), "level": "", "why": why}
            for name in ("fail_to_pass", "pass_to_pass")
            for test, status in getattr(grade, name).items()
            for why in [_WHY.get(str(status), "")]
        ],
    }
