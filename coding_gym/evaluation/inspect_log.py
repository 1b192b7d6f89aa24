"""Writes Inspect logs, for ``inspect view`` and `inspect_ai.log`; requires the extra ``inspect``.

Each attempt becomes a sample, with the task id as id and the attempt's number plus 1 as epoch. The
gold patch and the names of hidden tests are excluded.
"""

import asyncio
import json
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from itertools import takewhile
from pathlib import Path
from statistics import fmean
from typing import Any

from coding_gym.calls import TOKEN_COUNTS
from coding_gym.evaluation.exports import valid_json
from coding_gym.grade import Grade
from coding_gym.optional import missing_extra
from coding_gym.trajectory import Trajectory

try:
    from inspect_ai import log, model, scorer, viewer
except ImportError as error:
    raise missing_extra("inspect-ai", "inspect") from error

SCORER = "resolved"
MAX_CHARS = 20_000_000
"""Number of characters after which a log is complete; Inspect's writer keeps a log in memory."""


def write_logs(
    config: Mapping[str, Any], trajectories: Iterable[Trajectory], out: Path
) -> list[Path]:
    """Writes the attempts of a run as logs and returns the files.

    A large run is split into several logs, to bound memory. The content is marked as untrusted,
    so ``inspect view`` displays plain text.

    Args:
        config: The settings of the run.
        trajectories: The attempts of the run.
        out: The output folder; it is created if missing.
    """
    out.mkdir(parents=True, exist_ok=True)
    config, remaining_records = json.loads(valid_json(config)), iter(trajectories)
    paths: list[Path] = []
    while samples := [*_next_samples(remaining_records)]:
        paths.append(out / f"part-{len(paths) + 1:03}.eval")
        log.write_eval_log(_log(config, samples, len(paths)), paths[-1])
    return paths


def _next_samples(records: Iterator[Trajectory]) -> Iterator[Any]:
    """Yields the samples of the next log, and advances the iterator."""
    num_chars = 0
    while num_chars < MAX_CHARS and (trajectory := next(records, None)):
        text = valid_json(trajectory.to_json())
        num_chars += len(text)
        yield _sample(Trajectory.from_json(json.loads(text)))


def _log(config: Mapping[str, Any], samples: list[Any], number: int) -> Any:
    agent, tasks = config["agent"], config["tasks"]
    spec = log.EvalSpec(
        created=config["created_at"],
        run_id=config["run_id"],
        eval_id=f"{config['run_id']}-{number}",
        task="coding_gym",
        dataset=log.EvalDataset(name=str(tasks.get("source", ""))),
        model=str(agent.get("model") or agent["name"]),
        solver=agent["name"],
        config=log.EvalConfig(epochs=config.get("attempts")),
        packages=config.get("versions") or {},
        metadata={"part": number, **{key: config.get(key) for key in ("episode", "seed")}},
        viewer=viewer.ViewerConfig(trust_content=False),
    )
    scores = [sample.scores[SCORER].value for sample in samples if sample.scores]
    mean = {"mean": log.EvalMetric(name="mean", value=fmean(scores))} if scores else {}
    score = log.EvalScore(name=SCORER, scorer=SCORER, scored_samples=len(scores), metrics=mean)
    counts = {"total_samples": len(samples), "completed_samples": len(scores)}
    results = log.EvalResults(**counts, scores=[score])
    return log.EvalLog(status="success", eval=spec, results=results, samples=samples)


def _sample(trajectory: Trajectory) -> Any:
    chat: Any = [{"tool_call_id": "", **message} for message in trajectory.messages]
    convert = model.messages_from_openai(chat, trajectory.model or None)
    with ThreadPoolExecutor(1) as thread:  # a notebook's thread already runs an event loop
        messages = thread.submit(asyncio.run, convert).result()
    replies = [message for message in messages if message.role == "assistant"]
    choices = [model.ChatCompletionChoice(message=message) for message in replies[-1:]]
    usage, name = trajectory.usage, trajectory.model or trajectory.agent
    fields = ("agent", "toolset", "tokenizer", "seed", "patch", "stop_reason", "error_class")
    failure = trajectory.error or trajectory.error_class
    return log.EvalSample(
        id=trajectory.task_id,
        epoch=trajectory.attempt + 1,
        input=[*takewhile(lambda message: message.role != "assistant", messages)],
        target="",
        messages=messages,
        output=model.ModelOutput(model=name, choices=choices),
        scores={SCORER: _score(trajectory.grade)} if trajectory.grade else None,
        metadata={
            **{field: getattr(trajectory, field) for field in fields},
            "rewards": [turn.reward for turn in trajectory.turns],
        },
        model_usage={name: _usage(usage, trajectory.cost)} if usage.get("prompt_tokens") else {},
        started_at=trajectory.started_at or None,
        total_time=trajectory.duration_s,
        error=log.EvalError(message=failure, traceback="", traceback_ansi="") if failure else None,
    )


def _score(grade: Grade) -> Any:
    extra = {"challenge": grade.challenge, "levels": dict(grade.levels)}
    return scorer.Score(value=float(grade.resolved), explanation=str(grade.reason), metadata=extra)


def _usage(counts: Mapping[str, Any], cost: float | None) -> Any:
    """Returns token counts for Inspect, which counts cached prompt tokens separately."""
    prompt, reply, cached = map(counts.get, TOKEN_COUNTS)
    return model.ModelUsage(
        input_tokens=(prompt or 0) - (cached or 0),
        output_tokens=reply or 0,
        total_tokens=(prompt or 0) + (reply or 0),
        input_tokens_cache_read=cached,
        total_cost=cost,
    )
