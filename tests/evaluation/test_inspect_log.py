"""``export --format inspect``: runs as logs of Inspect."""

import sys
from pathlib import Path
from typing import Any

import pytest
from made_runs import make_run

from coding_gym.errors import MissingDependencyError
from coding_gym.evaluation import export
from coding_gym.grade import GradeReason


@pytest.fixture
def run(tmp_path: Path, tiny_row: dict[str, Any]) -> Path:
    return make_run(tmp_path / "run", tiny_row)


def test_missing_package_names_its_extra(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, "coding_gym.evaluation.inspect_log", raising=False)
    monkeypatch.setitem(sys.modules, "inspect_ai", None)
    with pytest.raises(MissingDependencyError, match="inspect"):
        export(run, "inspect", tmp_path / "out")


@pytest.fixture
def samples(run: Path, tmp_path: Path) -> dict[tuple[str, int], Any]:
    log = pytest.importorskip("inspect_ai.log", reason="needs the extra `inspect`")
    (path,) = export(run, "inspect", tmp_path / "out")
    return {(sample.id, sample.epoch): sample for sample in log.read_eval_log(path).samples}


@pytest.mark.nightly
def test_inspect_reads_every_attempt_and_its_verdict(samples: dict[Any, Any]) -> None:
    ids = ("shapes-area", "empty", "wrong", "lost")
    assert samples.keys() == {(task_id, epoch) for task_id in ids for epoch in (1, 2)}
    assert samples["shapes-area", 1].scores["resolved"].value == 1.0
    wrong = samples["wrong", 1].scores["resolved"]
    assert (wrong.value, wrong.explanation) == (0.0, GradeReason.TESTS_FAILED)
    assert not samples["lost", 1].scores
    assert samples["lost", 1].error.message == "x"
    assert "test_hidden" not in samples["shapes-area", 1].model_dump_json()


@pytest.mark.nightly
def test_inspect_reads_messages_and_calls_unchanged(samples: dict[Any, Any]) -> None:
    _, user, reply, result, error, last, _ = samples["shapes-area", 1].messages
    assert (user.role, user.text) == ("user", "It adds. \ufffd")
    assert (reply.content[0].reasoning, reply.text) == ("Hm.", "Look.")
    assert [(call.id, call.arguments) for call in reply.tool_calls] == [
        ("a", {"cmd": "ls"}),
        ("b", {}),
    ]
    assert [bool(call.parse_error) for call in reply.tool_calls] == [False, True]
    assert (result.tool_call_id, result.function, result.text) == ("a", "shell", "shapes.py")
    assert (error.tool_call_id, last.text) == ("b", "")
    assert samples["wrong", 1].metadata["patch"] == "diff \ufffd"


@pytest.mark.nightly
def test_inspect_reads_rewards_and_usage(samples: dict[Any, Any]) -> None:
    sample = samples["shapes-area", 1]
    assert sample.metadata["rewards"] == [0.0, 1.0]
    assert sample.model_usage["owner/model"].total_cost == 0.5
    assert sample.model_usage["owner/model"].input_tokens == 9


@pytest.mark.nightly
def test_inspect_logs_are_untrusted_and_large_runs_split(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = pytest.importorskip("inspect_ai.log", reason="needs the extra `inspect`")
    monkeypatch.setattr("coding_gym.evaluation.inspect_log.MAX_CHARS", 1)
    logs = [log.read_eval_log(path) for path in export(run, "inspect", tmp_path / "out")]
    assert [len(one.samples) for one in logs] == [1] * 8
    assert {one.eval.viewer.trust_content for one in logs} == {False}
    assert len({one.eval.eval_id for one in logs}) == 8
    assert [len(one.results.scores[0].metrics) for one in logs] == [1] * 6 + [0] * 2
