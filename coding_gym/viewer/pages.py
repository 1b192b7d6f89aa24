"""Creates the content of the viewer's pages as JSON values, from the records of runs.

Each text of a record becomes ``{"text": its beginning, "total": its length}``, so that pages have a
bounded size; `Run.text` returns the rest in pieces.
"""

import fcntl
import json
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import chain, count, zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field, validate_call

from coding_gym import evaluation
from coding_gym.errors import InvalidArgumentError, UnknownNameError
from coding_gym.evaluation.report import Report
from coding_gym.evaluation.run_tasks import load_run_tasks, unchanged_task
from coding_gym.evaluation.tables import flatten
from coding_gym.run_folder import CONFIG, LOCK, RunFolder
from coding_gym.trajectory import Trajectory, Turn
from coding_gym.viewer import turns
from coding_gym.viewer.index import RunIndex, open_regular, version

if TYPE_CHECKING:
    from coding_gym.task import Task

Json = dict[str, Any]

_MAX_CONFIG_BYTES = 64 << 20
_MAX_ATTEMPTS = 10**9  # Python refuses to print integers with many digits
_MAX_PAGE, _MAX_TEXT, _MAX_MORE = 5_000_000, 20_000, 50_000
"""Maximum characters of a page (approximate), of a text on a page, and of a further piece."""

_SOURCES = ("bundled", "polyglot")
_Number = Annotated[int, Field(ge=0, le=2**31)]


class Run:
    """A run; `episodes`, `search`, `episode` and `text` return the pages of these names as JSON.

    Args:
        folder: The run's folder.
        run_id: The name of the run in addresses.
        sources: Task sources that may be read, in addition to the tasks of this package.

    Attributes:
        index: The episodes.
        tasks: The tasks by id; None before `load_tasks` is called.

    Raises:
        InvalidArgumentError: The folder contains no readable run.
    """

    def __init__(self, folder: Path, run_id: str, sources: Sequence[str] = ()) -> None:
        self.id = run_id
        self._sources = (*_SOURCES, *sources)
        self.folder = folder
        try:
            with open_regular(folder / CONFIG) as file:
                config: Json = dict(json.loads(file.read(_MAX_CONFIG_BYTES)))
            self._settings = dict(flatten(config))
        except (OSError, ValueError, TypeError, RecursionError) as problem:
            raise InvalidArgumentError(
                f"{folder} contains no run: {problem!s:.300}; name a run folder of coding-gym eval"
            ) from None
        self.config = _repaired(config)
        self.index = RunIndex(folder)
        self.tasks: Mapping[str, Task] | None = None
        self._summary: Json = {}
        self._is_changed = True  # since the last summary

    def load_tasks(self) -> None:
        """Loads the run's tasks, for repositories, labels and gold patches.

        Environments and clones are skipped, because creating them starts programs. Settings can be
        malicious, so a file or a dataset is read only if the user has named it.
        """
        source = self.config["tasks"]
        settings = {name: source.get(name) for name in ("source", "split", "task_ids")}
        try:
            is_allowed = settings["source"] in self._sources
            run = RunFolder(self.folder, {"tasks": settings})
            self.tasks = load_run_tasks(run) if is_allowed else {}
        except Exception:  # noqa: BLE001 - malicious settings can cause any exception
            self.tasks = {}
        self._is_changed = True

    def refresh(self) -> bool:
        """Reads a few records; returns whether unread records may remain."""
        is_busy = self.index.update() | self.index.enrich()
        if not is_busy and self.tasks is None:
            self.tasks = {}
            threading.Thread(target=self.load_tasks, daemon=True).start()
        if is_busy:
            self._is_changed = True
        return is_busy

    def complete(self) -> None:
        """Reads all records and loads the tasks."""
        self.index.update()
        while self.index.enrich():
            pass
        self.load_tasks()

    @property
    def latest(self) -> Json:
        """Settings, counts, resolved rate and progress of the run; recomputed after a change."""
        if self._is_changed:
            self._is_changed = False
            self._summary = self._summarise()
        return self._summary | {"running": self._is_running()}

    def report(self) -> Report:
        """Returns a report with verdicts only; attempts with unread records have no verdict."""
        names = ("error_class", "stop_reason", "resolved", "hacked")
        attempts = [
            {"task_id": row["task"], "grade_reason": row["reason"]}
            | {name: row[name] for name in names if name in row}
            for row in [*self.index.rows.values()]
        ]
        return Report.of(self.config, attempts)

    def _summarise(self) -> Json:
        rows, result = [*self.index.rows.values()], self.report()
        task_ids = self.config["tasks"]["task_ids"]  # empty for recorded episodes
        num_attempts = self.config["attempts"]
        costs = [row["cost"] for row in rows if row["cost"] is not None]
        num_read = sum(row["indexed"] for row in rows)
        settings = {
            name: turns.argument_text(value)[:300]
            for name, value in self._settings.items()
            if name != "tasks.task_ids"
        }
        return {
            "id": self.id,
            "settings": settings,
            "num_tasks": len(task_ids or {row["task"] for row in rows}),
            "attempts": max([num_attempts, *(row["attempt"] + 1 for row in rows)]),
            "planned": len(task_ids) * num_attempts or len(rows),
            "done": len(rows) - result.num_errors,
            "num_resolved": result.num_resolved,
            "num_errors": result.num_errors,
            "error_classes": result.error_classes,
            "tokens": sum(row["tokens"] or 0 for row in rows),
            "cost": sum(costs) if costs else None,
            "indexed": num_read / len(rows) if rows else 1,
            "resolved": result.resolved.to_json() if result.resolved else {"value": None},
            "caveats": result.caveats if num_read == len(rows) else (),
        }

    def _is_running(self) -> bool:
        """Returns whether an evaluation holds the lock of the run folder."""
        try:
            with open_regular(self.folder / LOCK) as file:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)  # released when the file closes
        except BlockingIOError:
            return True
        except OSError:  # a missing file, or a file system without locks
            return False
        return False

    def episodes(self) -> Json:
        """Returns the rows of all episodes, ordered by start time."""
        tasks = self.tasks or {}
        rows = []
        for row in [*self.index.rows.values()]:
            task = tasks.get(row["task"])
            rows.append(row | {name: getattr(task, name, "") for name in ("repo", "difficulty")})
        rows.sort(key=lambda row: (row["started_at"] or "~", row["task"], row["attempt"]))
        return {"episodes": rows}

    @validate_call
    def search(self, text: str) -> Json:
        """Returns the task and the attempt of each episode that has the phrase in a turn."""
        return {"matches": self.index.search(text)}

    @validate_call
    def episode(self, task: str, attempt: _Number = 0) -> Json:
        """Returns an episode.

        Raises:
            UnknownNameError: The run does not have this episode.
            InvalidArgumentError: The record of the episode cannot be read.
        """
        record = self.index.read((task, attempt))
        num_texts = 1 + sum(3 + len(turn.calls) for turn in record.turns)
        limit = min(_MAX_TEXT, _MAX_PAGE // num_texts)
        page = _episode(record, lambda text: {"text": text[:limit], "total": len(text)})
        return {**page, "run": self.id, "gold": self._gold(record)}

    @validate_call
    def text(self, task: str, path: str, attempt: _Number = 0, offset: _Number = 0) -> Json:
        """Returns a piece of a text, from character ``offset`` on.

        The path locates the text in the JSON of the episode, such as ``patch`` or
        ``turns/3/calls/0/arguments/cmd``.

        Raises:
            UnknownNameError: The path names no text.
            InvalidArgumentError: As for `episode`.
        """
        node: Any = _episode(self.index.read((task, attempt)), str)
        try:
            for name in path.split("/", 5):  # names of arguments can contain slashes
                node = node[int(name) if isinstance(node, list) else name]
        except (LookupError, ValueError, TypeError):
            node = None
        if not isinstance(node, str):
            raise UnknownNameError(f"the episode has no text {path!r:.100}")
        return {"text": node[offset : offset + _MAX_MORE], "total": len(node)}

    def _gold(self, record: Trajectory) -> str:
        """Returns the gold patch of the episode's task; "" if the task is unknown or changed."""
        tasks = self.tasks or {}
        # Environments, which are not loaded here, can exclude tests and so change the digest.
        is_comparable = "tasks.environments" not in self._settings
        task = unchanged_task(tasks, record) if is_comparable else tasks.get(record.task_id)
        return task.gold_patch if task else ""


class Runs:
    """The runs in a list of folders.

    Args:
        paths: Run folders, or folders that contain run folders.
        sources: As for `Run`.

    Attributes:
        by_id: The runs by id in addresses.
        problems: The error message of each folder with unreadable settings.

    Raises:
        InvalidArgumentError: A path is not a folder.
    """

    def __init__(self, paths: Sequence[Path], sources: Sequence[str] = ()) -> None:
        for path in paths:
            if not path.is_dir():
                raise InvalidArgumentError(
                    f"{path} is not a folder; name a run folder, or a folder of run folders"
                )
        self.paths, self._sources = paths, sources
        self.by_id: dict[str, Run] = {}
        self.problems: dict[Path, str] = {}
        self._versions: dict[Path, tuple[float, int, int]] = {}  # of config.json, by folder
        self.refresh()

    def refresh(self) -> None:
        """Adds new runs, reads changed runs again, and removes deleted runs."""
        files = [file for path in self.paths for file in (path / CONFIG, *path.glob(f"*/{CONFIG}"))]
        versions = {file.parent.resolve(): version(file) for file in sorted(files) if file.exists()}
        unchanged_folders = {folder for folder, _ in versions.items() & self._versions.items()}
        by_id = {run.id: run for run in self.by_id.values() if run.folder in unchanged_folders}
        for folder in [f for f in versions if f not in unchanged_folders]:
            names = chain([folder.name], (f"{folder.name}~{number}" for number in count(2)))
            run_id = next(name for name in names if name not in by_id)
            self.problems.pop(folder, None)
            try:
                by_id[run_id] = Run(folder, run_id, self._sources)
            except InvalidArgumentError as problem:
                self.problems[folder] = str(problem)
        self.by_id, self._versions = by_id, versions

    def find(self, run_id: str) -> Run:
        """Returns a run; raises UnknownNameError if no run has this id."""
        if run_id not in self.by_id:
            raise UnknownNameError(f"the viewer has no run {run_id!r:.100}")
        return self.by_id[run_id]

    def page(self) -> Json:
        """Returns the summaries of all runs, the newest run first."""
        runs = [run.latest for run in self.by_id.values()]
        runs.sort(key=lambda run: run["settings"].get("created_at", ""), reverse=True)
        return {"runs": runs}


def compare(a: Run, b: Run) -> Json:
    """Returns the comparison of two runs on their common tasks.

    Raises:
        InvalidArgumentError: The runs have no task in common.
    """
    comparison = evaluation.compare(a.report(), b.report())
    paired = comparison.paired
    return {
        "a": a.latest,
        "b": b.latest,
        "measure": comparison.measure,
        "warnings": comparison.warnings,
        **paired.to_json(),
        "flips": [{"task": task, "a": x, "b": y} for task, (x, y) in paired.flips.items()],
    }


def dumps(page: Json) -> str:
    """Returns a page as JSON text in ASCII; infinite numbers and NaN become null."""
    try:
        return json.dumps(page, allow_nan=False)
    except ValueError:
        return json.dumps(json.loads(json.dumps(page), parse_constant=lambda _: None))


def _repaired(config: Json) -> Json:
    """Returns settings with valid defaults for malformed values that `Report` reads."""
    agent, tasks, attempts = (config.get(name) for name in ("agent", "tasks", "attempts"))
    agent, tasks = (value if isinstance(value, dict) else {} for value in (agent, tasks))
    ids = tasks.get("task_ids")
    ids = [task for task in ids if isinstance(task, str)] if isinstance(ids, list) else []
    attempts = min(max(attempts, 1), _MAX_ATTEMPTS) if isinstance(attempts, int) else 1
    agent, tasks = {"model": "", **agent}, {**tasks, "task_ids": ids}
    return {"run_id": "", **config, "agent": agent, "tasks": tasks, "attempts": attempts}


def _episode(record: Trajectory, convert: Callable[[str], Any]) -> Json:
    """Returns the JSON of an episode; ``convert`` is applied to each text."""
    names = ("agent", "model", "toolset", "seed", "error_class", "cost", "duration_s", "started_at")
    grade = record.grade
    return {
        "task": record.task_id,
        "attempt": record.attempt,
        **{name: getattr(record, name) for name in (*names, "num_prefix_breaks")},
        "outcome": turns.outcome(record),
        "stop_reason": str(record.stop_reason or ""),
        "error": convert(record.error),
        "usage": dict(record.usage),
        "prompt": [
            {"role": m["role"], "content": convert(m["content"])} for m in turns.prompt(record)
        ],
        "turns": [_turn(*turn, convert) for turn in turns.with_thoughts(record)],
        "limits": record.settings.get("limits"),
        "patch": convert(record.patch),
        "grade": grade and {**grade.to_json(), "challenge": grade.challenge},
    }


def _turn(turn: Turn, thought: str, opening: str, convert: Callable[[str], Any]) -> Json:
    """Returns the JSON of a turn; ``convert`` is applied to each text."""
    calls = [
        {
            "name": call.name,
            "arguments": {k: convert(turns.argument_text(v)) for k, v in call.arguments.items()},
            "error": call.error,
            "ok": result and result.ok,
            "output": result and convert(result.content),
            "duration_s": result and result.duration_s,
        }
        for call, result in zip_longest(turn.calls, turn.results[: len(turn.calls)])
    ]
    return {
        "digest": turns.digest(turn),
        "opening": convert(opening),
        "thought": convert(thought),
        "action": convert(turn.action),
        "calls": calls,
        "observation": convert(turns.observation(turn)),
        "reward": turn.reward,
        "reward_parts": dict(turn.reward_parts),
        "duration_s": turn.duration_s,
        "model": turn.model_call and replace(turn.model_call, prompt_ids=()).to_json(),
    }
