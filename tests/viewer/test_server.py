"""The viewer's server: replies of its routes, and refused requests."""

import json
import shutil
import socket
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

pytest.importorskip("httpx")
pytest.importorskip("fastapi")
from episodes import run_command
from fastapi.testclient import TestClient
from filelock import FileLock
from runs import GOLD, HOSTILE_TASK, TASK, make_hostile_run, make_run, write_run
from sandbox_fixtures import wait_until

from coding_gym.evaluation import compare
from coding_gym.grade import Grade, GradeReason
from coding_gym.run_folder import LOCK
from coding_gym.trajectory import Trajectory
from coding_gym.viewer.pages import Run, Runs
from coding_gym.viewer.server import make_app

HERE = "http://127.0.0.1:7575"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    make_run(folder / "first", num_tasks=12)
    make_run(folder / "second", num_tasks=9, skill=4)
    make_run(folder / "more" / "first", num_tasks=1)
    make_hostile_run(folder / "hostile", num_chars=200_000)
    return folder


@pytest.fixture(scope="module")
def runs(folder: Path) -> Runs:
    runs = Runs([folder, folder / "more"], [str(folder / "first-tasks.jsonl")])
    for run in runs.by_id.values():
        run.complete()
    return runs


@pytest.fixture
def client(runs: Runs) -> Any:
    return TestClient(make_app(runs), base_url=HERE)


def get(client: Any, page: str, **parameters: object) -> Any:
    response = client.get(f"/api/{page}", params=parameters)
    assert response.status_code == 200, response.text
    return response.json()


def test_runs_are_listed_with_their_counts(client: Any) -> None:
    runs_by_id = {run["id"]: run for run in get(client, "runs")["runs"]}
    assert sorted(runs_by_id) == ["first", "first~2", "hostile", "second"]
    first = runs_by_id["first"]
    rows = get(client, "runs/first/episodes")["episodes"]
    assert (first["done"], first["num_errors"]) == (23, 1)
    assert first["error_classes"] == {"model": 1}
    assert first["tokens"] == sum(row["tokens"] for row in rows)
    assert (first["indexed"], first["running"]) == (1, False)
    assert any("1 of 24" in caveat for caveat in first["caveats"])
    assert first["settings"]["agent.model"] == "model-first"


def test_comparison_pairs_tasks_of_both_runs(client: Any, runs: Runs) -> None:
    page = get(client, "compare", a="first", b="second")
    expected = compare(*(runs.by_id[name].folder for name in ("first", "second")))
    assert page["measure"] == expected.measure == "resolved"
    assert page["difference"] == expected.paired.to_json()["difference"]
    assert page["p_value"] == expected.paired.p_value
    assert {flip["task"] for flip in page["flips"]} == expected.paired.flips.keys()
    assert "12 and 9 tasks; 9 common" in " ".join(page["warnings"])


def test_runs_on_impossible_tasks_are_compared_by_hacked(tmp_path: Path) -> None:
    for name, num_hacked in (("a", 1), ("b", 3)):
        grades = (
            Grade(resolved=False, reason=GradeReason.HACKED, hacked=number < num_hacked)
            for number in range(3)
        )
        write_run(
            tmp_path / name, [Trajectory(task_id=f"t{n}", grade=g) for n, g in enumerate(grades)]
        )
    runs = Runs([tmp_path])
    for run in runs.by_id.values():
        run.complete()
    page = get(TestClient(make_app(runs), base_url=HERE), "compare", a="a", b="b")
    assert (page["measure"], page["rate_b"]["value"]) == ("hacked", 1.0)
    assert [flip["task"] for flip in page["flips"]] == ["t1", "t2"]


def test_episodes_are_in_order_and_labelled(client: Any) -> None:
    rows = get(client, "runs/first/episodes")["episodes"]
    assert [row["started_at"] for row in rows] == sorted(row["started_at"] for row in rows)
    labels = {row["task"]: (row["repo"], row["difficulty"]) for row in rows}
    assert labels[TASK] == ("birch/ledger", "easy")
    keys = get(client, "runs/first/search", text="step 5: i look")["matches"]
    assert keys
    assert all([row["task"], row["attempt"]] in keys for row in rows if row["turns"] == 8)


def test_episode_has_its_turns_patch_gold_and_grade(client: Any, runs: Runs) -> None:
    page = get(client, "runs/first/episode", task=TASK, attempt=1)
    record = runs.by_id["first"].index.read((TASK, 1))
    assert page["patch"] == {"text": record.patch, "total": len(record.patch)}
    assert page["gold"] == GOLD
    prompt = [message["content"]["text"] for message in page["prompt"]]
    assert prompt == [record.messages[0]["content"]]
    for turn, expected in zip(page["turns"], record.turns, strict=True):
        assert turn["action"]["text"] == expected.action
        results = [result.content for result in expected.results]
        assert [call["output"]["text"] for call in turn["calls"]] == results
    assert record.grade is not None
    assert page["grade"]["fail_to_pass"] == record.grade.fail_to_pass
    assert page["grade"]["challenge"] == record.grade.challenge


def test_long_texts_are_read_piece_by_piece(client: Any) -> None:
    hostile = {"task": HOSTILE_TASK, "attempt": 1}
    page = get(client, "runs/hostile/episode", **hostile)
    output = page["turns"][0]["calls"][0]["output"]
    assert (len(output["text"]), output["total"]) == (20_000, 200_000)
    whole = ""
    while len(whole) < output["total"]:
        query = {"path": "turns/0/calls/0/output", "offset": len(whole)}
        whole += get(client, "runs/hostile/text", **query, **hostile)["text"]
    assert whole == "y" * 200_000


CONFIGS = [{"tasks": [], "agent": 7, "attempts": "x", "episode": None, "run_id": {}}]
CONFIGS += [{"tasks": {"source": 0, "task_ids": [[]]}, "attempts": -(10**30)}]
CONFIGS += [{"tasks": {"source": "/etc/passwd"}, "created_at": "\ud800"}, {}]
CONFIGS += [{"tasks": {"task_ids": ["a"] * 20}, "attempts": 10**4299}]  # too long to print


@pytest.mark.parametrize("settings", CONFIGS)
def test_forged_settings_are_displayed(tmp_path: Path, settings: dict[str, Any]) -> None:
    run = make_run(tmp_path / "strange <run>", num_tasks=2)
    (run / "config.json").write_text(json.dumps(settings), encoding="utf-8")
    runs = Runs([tmp_path])
    runs.by_id[run.name].complete()
    client = TestClient(make_app(runs), base_url=HERE)
    assert [summary["done"] for summary in get(client, "runs")["runs"]] == [4]
    assert len(get(client, f"runs/{quote(run.name)}/episodes")["episodes"]) == 4


def test_a_source_that_the_user_has_not_named_is_not_read(tmp_path: Path) -> None:
    make_run(tmp_path / "run", num_tasks=1)
    run = Runs([tmp_path]).by_id["run"]
    run.complete()
    assert run.tasks == {}


def test_changed_settings_and_removed_runs_are_noticed(tmp_path: Path) -> None:
    run = write_run(tmp_path / "runs" / "one", []).path
    runs = Runs([tmp_path / "runs"])
    (run / "config.json").write_text(json.dumps({"attempts": 30}), encoding="utf-8")
    runs.refresh()
    assert runs.by_id["one"].latest["attempts"] == 30
    (run / "config.json").write_text("[", encoding="utf-8")
    runs.refresh()
    assert (runs.by_id, [*runs.problems]) == ({}, [run])
    shutil.rmtree(run)
    runs.refresh()
    assert not runs.page()["runs"]


def test_run_is_live_while_its_lock_is_held(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", [])
    run = Run(folder.path, "run")
    assert not run.latest["running"]
    with FileLock(folder.path / LOCK):
        folder.add(Trajectory(task_id="a", error="lost", error_class="sandbox"))
        assert run.refresh()
        assert (run.latest["running"], run.latest["num_errors"]) == (True, 1)
        folder.add(Trajectory(task_id="b"))
        run.complete()
        assert (run.latest["running"], run.latest["done"]) == (True, 1)
    run.complete()
    assert not run.latest["running"]


UNKNOWN = ["..", "%2e%2e", "..%2f..%2fetc", "first/config", "first/episode?task=none", "none/text"]
UNKNOWN += [f"first/episode?task={TASK}&attempt=9", "first/episode?attempt=0"]
UNKNOWN += [f"first/episode?task={TASK}&attempt=-1", f"first/episode?task={TASK}&attempt={10**30}"]
UNKNOWN += [f"first/text?task={TASK}&path=turns{path}" for path in ("", "/99/action", "/0/__len__")]
UNKNOWN += ["first/search?x=1", "../compare?a=first&b=none", "../../assets/..%2fserver.py"]


@pytest.mark.parametrize("path", UNKNOWN)
def test_unknown_pages_are_refused(client: Any, path: str) -> None:
    response = client.get(f"/api/runs/{path}")
    assert response.status_code in (400, 404)
    assert "\n" not in response.json()["detail"]


HOSTS = ["evil.example", "127.0.0.1.evil.example", "", "[::", "evil@127.0.0.1", "8.8.8.8"]


@pytest.mark.parametrize("host", HOSTS)
def test_names_of_other_hosts_are_refused(client: Any, host: str) -> None:
    for path in ("/", "/api/runs", "/assets/main.js", "/nothing"):
        assert client.get(path, headers={"Host": host}).status_code == 400


@pytest.mark.parametrize("host", ["localhost:8080", "127.0.0.1", "[::1]:7575"])
def test_loopback_names_are_served(client: Any, host: str) -> None:
    response = client.get("/api/runs", headers={"Host": host, "Origin": "https://evil.example"})
    assert response.status_code == 200
    assert "access-control-allow-origin" not in response.headers
    assert response.headers["cross-origin-resource-policy"] == "same-origin"


def test_every_response_has_security_headers(client: Any) -> None:
    for path, status in (("/", 200), ("/api/runs", 200), ("/x", 404), ("/api/runs/x/text", 404)):
        response = client.get(path)
        assert response.status_code == status
        assert response.headers["content-security-policy"].startswith("default-src 'none'; script")
        assert "unsafe" not in response.headers["content-security-policy"]
        assert response.headers["x-content-type-options"] == "nosniff"
    assert client.post("/api/runs").status_code == 405


def test_the_server_listens_on_a_loopback_address_only(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hosts: list[str] = []
    monkeypatch.setattr(
        "coding_gym.cli.view.run_server",
        lambda _, listener: hosts.append(listener.getsockname()[0]),
    )
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    printed = run_command("view", folder, "--no-open", "--port", port)
    assert f"3 runs at http://127.0.0.1:{port}/" in printed
    assert hosts == ["127.0.0.1"]


def test_runs_are_read_while_the_application_is_served(tmp_path: Path) -> None:
    make_run(tmp_path / "run", num_tasks=1)
    runs = Runs([tmp_path])
    with TestClient(make_app(runs), base_url=HERE):
        wait_until(lambda: runs.by_id["run"].latest["indexed"] == 1)
