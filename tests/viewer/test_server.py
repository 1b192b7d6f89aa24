"""The viewer's server: what its routes answer, and which requests it refuses."""

import errno
import json
import shutil
import socket
import time
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import Any
from unittest.mock import Mock
from urllib.parse import quote

import pytest

httpx = pytest.importorskip("httpx")
pytest.importorskip("fastapi")
from browsing import served  # noqa: E402
from checks.synthetic_runs import make_hostile_run, make_run  # noqa: E402
from fastapi.testclient import TestClient  # noqa: E402

from coding_gym.cli import view  # noqa: E402
from coding_gym.evaluation import compare, report  # noqa: E402
from coding_gym.rollout import RunFolder  # noqa: E402
from coding_gym.trajectory import Trajectory  # noqa: E402
from coding_gym.viewer.pages import Runs  # noqa: E402
from coding_gym.viewer.server import make_app  # noqa: E402

HERE = "http://127.0.0.1:7575"
TASK = "birch__ledger-000001"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    make_run(folder / "first", num_tasks=40, attempts=2)
    make_run(folder / "second", num_tasks=30, attempts=2, skill=0.7, seed=1)
    make_run(folder / "more" / "first", num_tasks=1)
    make_hostile_run(folder / "hostile", output_chars=200_000, num_lines=1000)
    return folder


@pytest.fixture(scope="module")
def runs(folder: Path) -> Runs:
    runs = Runs([folder, folder / "more"])
    for run in runs.by_id.values():
        run.index.complete()
        run.load_tasks()
    return runs


@pytest.fixture
def client(runs: Runs) -> Any:
    return TestClient(make_app(runs), base_url=HERE)


def get(client: Any, page: str, **parameters: object) -> Any:
    response = client.get(f"/api/{page}", params=parameters)
    assert response.status_code == 200, response.text
    return response.json()


def test_runs_are_listed_once_under_ids_of_their_own(client: Any) -> None:
    ids = [run["id"] for run in get(client, "runs")["runs"]]
    assert sorted(ids) == ["first", "first~2", "hostile", "second"]
    assert [get(client, f"runs/{run_id}")["id"] for run_id in ids] == ids


def test_numbers_of_a_run_are_those_of_its_report(client: Any, folder: Path) -> None:
    made, shown = report(folder / "first"), get(client, "runs/first")
    assert "settings_hash" in made.to_markdown()
    names, overall = ("num_resolved", "num_errors"), made.overall.to_json()
    assert [shown[name] for name in names] == [overall[name] for name in names]
    for name, estimate in (("resolved", made.overall.resolved), ("turns", made.metrics["turns"])):
        assert estimate is not None
        assert shown["estimates"][name] == pytest.approx(estimate.to_json())
    assert shown["error_classes"] == made.error_classes
    assert shown["caveats"] == [c for c in made.caveats if "could not be loaded" not in c]
    rows = RunFolder.open(folder / "first").rows().values()
    assert shown["cost"] == pytest.approx(sum(row.cost or 0 for row in rows))
    assert (shown["indexed"], shown["running"], shown["planned"]) == (1, False, 80)


def test_a_comparison_is_that_of_evaluation(client: Any, folder: Path) -> None:
    expected = compare(folder / "first", folder / "second").resolved
    shown = get(client, "compare", a="first", b="second")
    for name in ("rate_a", "rate_b", "difference"):
        assert shown[name] == pytest.approx(getattr(expected, name).to_json())
    assert shown["p_value"] == pytest.approx(expected.p_value)
    assert {f["task"]: (f["a"], f["b"]) for f in shown["flips"]} == expected.flips
    numbers = shown["difference"]["num_tasks"], shown["num_only_a"], shown["num_only_b"]
    assert numbers == (30, 10, 0)
    assert sum(repo["num_tasks"] for repo in shown["repositories"]) == 30
    assert any("seed" in w or "tasks" in w for w in shown["warnings"])


def listed(client: Any, **parameters: object) -> Any:
    return get(client, "runs/first/episodes", **parameters)["episodes"]


def test_episodes_are_filtered_sorted_and_paged(client: Any) -> None:
    everything = listed(client)
    assert [e["started_at"] for e in everything] == sorted(e["started_at"] for e in everything)
    facets = get(client, "runs/first/episodes")["facets"]
    for name, values in {**facets, "outcome": ["resolved", "unresolved", "error"]}.items():
        assert values
        for value in values:
            assert listed(client, **{name: value}) == [e for e in everything if e[name] == value]
    for name in ("tokens", "task", "cost", "duration_s", "turns"):
        values = [e[name] for e in listed(client, sort=name, order="desc")]
        assert values == sorted(values, reverse=True)
    assert [e for i in (0, 30, 60) for e in listed(client, offset=i, limit=30)] == everything
    assert {e["task"] for e in listed(client, task="LEDGER-000001")} == {TASK}
    assert {e["turns"] for e in listed(client, text="STEP 6: i look")} == {8}
    assert listed(client, text="1 failed, 1 passed")  # coloured in the record
    assert listed(client, text='"no AND (such*') == listed(client, text="%_") == []


def test_an_episode_has_its_turns_grade_and_neighbours(client: Any, folder: Path) -> None:
    order = [[e["task"], e["attempt"]] for e in listed(client)]
    page = get(client, "runs/first/episode", task=TASK, attempt=1)
    place = order.index([TASK, 1])
    around = {"previous": order[place - 1], "next": order[place + 1]}
    assert page["neighbours"] == {"attempts": [0, 1], **around}
    run = RunFolder.open(folder / "first")
    record = run.read(run.rows()[TASK, 1])
    assert page["num_turns"] == len(record.turns) == len(page["turns"])
    assert page["patch"] == {"text": record.patch, "total": len(record.patch)}
    prompt = [m["content"] for m in record.messages if m["role"] in ("system", "user")]
    assert [message["content"]["text"] for message in page["prompt"]] == prompt
    for shown, turn in zip(page["turns"], record.turns, strict=True):
        assert shown["action"]["text"] == turn.action
        calls = [(c["name"], c["output"]["text"]) for c in shown["calls"]]
        assert calls == [(c.name, r.content) for c, r in zip(turn.calls, turn.results, strict=True)]
    assert page["timeline"]["tokens"] == sorted(page["timeline"]["tokens"])
    assert record.grade is not None
    expected = {**record.grade.fail_to_pass, **record.grade.pass_to_pass}
    assert {test["test"]: test["status"] for test in page["grade"]["tests"]} == expected
    assert page["grade"]["challenge"] == ("value 1" if record.resolved else "not challenged")
    assert page["has_gold"]
    assert "area.py" in get(client, "runs/first/gold", task=TASK)["patch"]["text"]


def test_long_texts_are_cut_and_read_piece_by_piece(client: Any) -> None:
    hostile = {"task": "task<script>alert(1)</script>", "attempt": 1}
    page = get(client, "runs/hostile/episode", **hostile)
    output = page["turns"][0]["calls"][0]["output"]
    assert (len(output["text"]), output["total"]) == (20_000, 200_000)
    path, whole = "turns/0/calls/0/output", ""
    while len(whole) < output["total"]:
        piece = get(client, "runs/hostile/text", path=path, offset=len(whole), **hostile)
        whole += piece["text"]
    assert whole == "y" * 200_000
    assert get(client, "runs/hostile/turns", start=1, **hostile)["turns"] == page["turns"][1:]


CONFIGS = (5, {"tasks": [], "agent": 7, "attempts": "x", "episode": None, "run_id": {}})
CONFIGS += ({"tasks": {"source": 0, "task_ids": [[]]}, "attempts": -(10**30)},)
CONFIGS += ({"tasks": {"source": "/etc/passwd"}, "created_at": "\ud800"},)


@pytest.mark.parametrize("config", CONFIGS)
def test_settings_that_no_runner_wrote_do_no_harm(tmp_path: Path, config: object) -> None:
    run = make_run(tmp_path / "odd <run>", num_tasks=2)
    (run / "config.json").write_text(json.dumps(config), encoding="utf-8")
    runs = Runs([tmp_path])
    for found in runs.by_id.values():
        found.load_tasks()
    client = TestClient(make_app(runs), base_url=HERE)
    shown = get(client, "runs")["runs"]
    assert len(shown) == isinstance(config, dict) == (run not in runs.problems)
    for one in shown:
        assert one["id"] == "odd-run-"
        assert get(client, f"runs/{one['id']}/episodes")["total"] in (0, 2)


def test_changed_settings_and_removed_runs_are_noticed(tmp_path: Path) -> None:
    run = make_run(tmp_path / "runs" / "one", num_tasks=2)
    runs = Runs([tmp_path / "runs"])
    client = TestClient(make_app(runs), base_url=HERE)
    config = json.loads((run / "config.json").read_text(encoding="utf-8"))
    assert get(client, "runs/one")["planned"] == 2
    (run / "config.json").write_text(json.dumps(config | {"attempts": 30}), encoding="utf-8")
    runs.refresh()
    assert get(client, "runs/one")["planned"] == 60
    shutil.rmtree(run)
    runs.refresh()
    assert client.get("/api/runs/one").status_code == 404


UNKNOWN = ["..", "%2e%2e", "..%2f..%2fetc", "first%00", "first/config", "hostile/gold?task=none"]
UNKNOWN += ["first/episode?task=none", f"first/episode?task={TASK}&attempt=9"]
UNKNOWN += [f"first/text?task={TASK}&path=turns{path}" for path in ("", "/99/action", "/0/__len__")]
UNKNOWN += [
    "first?x=1",
    "first/turns?task=a&x=1",
    "../compare?a=first&b=none",
    "../../assets/..%2fserver.py",
    "../compare?a=first",
]
WRONG = ["limit=9999", "offset=-1", "sort=id;drop", "order=up", "self=1", f"offset={10**30}"]


@pytest.mark.parametrize("path", [*UNKNOWN, *(f"first/episodes?{query}" for query in WRONG)])
def test_what_is_not_there_is_refused_in_words(client: Any, path: str) -> None:
    response = client.get(f"/api/runs/{path}")
    assert response.status_code in (400, 404)
    assert "\n" not in response.json()["detail"]
    assert "root:" not in response.text


@pytest.mark.parametrize(
    "headers",
    [{"Host": "evil.example"}, {"Host": "127.0.0.1.evil.example"}, {"Host": ""}]
    + [{"Host": "[::"}, {"Host": "evil@127.0.0.1"}, {"Host": "127.0.0.1/?"}, {"Host": "8.8.8.8"}]
    + [{"Origin": origin} for origin in ("https://evil.example", "null", f"{HERE}0", "")]
    + [{"Sec-Fetch-Site": site} for site in ("cross-site", "same-site")],
)
def test_requests_of_other_sites_are_refused(client: Any, headers: dict[str, str]) -> None:
    for path in ("/api/runs", "/api/events", "/assets/main.js", "/nothing"):
        assert client.get(path, headers=headers).status_code == 403


@pytest.mark.parametrize("host", ["localhost:8080", "127.0.0.1", "[::1]:7575", "127.0.0.2:1"])
def test_own_names_and_pages_are_served(client: Any, host: str) -> None:
    headers = {"Host": host, "Origin": f"http://{host}", "Sec-Fetch-Site": "same-origin"}
    assert client.get("/api/runs", headers=headers).status_code == 200
    link = {"Host": host, "Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}
    assert client.get("/", headers=link).status_code == 200
    assert client.get("/api/runs", headers=link).status_code == 403


def test_every_response_has_the_headers_of_a_strict_page(client: Any) -> None:
    for path, status in (("/", 200), ("/api/runs", 200), ("/x", 404), ("/api/runs/x", 404)):
        response = client.get(path)
        assert response.status_code == status
        assert response.headers["content-security-policy"].startswith("default-src 'none'; script")
        assert "unsafe" not in response.headers["content-security-policy"]
        assert response.headers["x-content-type-options"] == "nosniff"
    assert client.post("/api/runs").status_code == 405


@pytest.mark.parametrize("token", ["", "a&b#/"])
def test_the_link_has_the_token_and_an_address(
    folder: Path, token: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    used = []
    monkeypatch.setattr(view, "serve", lambda _, **served: used.append(served))
    view.view([folder / "more"], "0.0.0.0", 7575, token, open_=False)  # noqa: S104
    used[0]["on_start"]()
    assert used[0]["token"] == token or (not token and len(used[0]["token"]) > 20)
    link = f"http://{socket.gethostname()}:7575/?token={quote(used[0]['token'], safe='')} "
    assert link in capsys.readouterr().out


def test_a_token_is_asked_for_and_kept_in_a_cookie(runs: Runs) -> None:
    app = make_app(runs, host="0.0.0.0", token="secret")  # noqa: S104, S106 - of this test
    client = TestClient(app, base_url="http://192.0.2.1:7575")
    for path in ("", "api/runs", "assets/main.js", "?token=", "?token=no", "api/runs?token=secret"):
        assert client.get(f"/{path}").status_code == 401
    assert client.get("/", headers={"Host": "evil.example"}).status_code == 403
    cookie = client.get("/?token=secret").headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    assert client.get("/api/runs").status_code == 200


def test_a_run_is_followed_while_it_grows(tmp_path: Path) -> None:
    config = {"tasks": {"source": "bundled", "task_ids": ["a", "b", "c"]}, "created_at": "now"}
    run = RunFolder.create(tmp_path / "runs" / "live", config)
    added = count()
    failed = Trajectory(task_id="a", error="lost", error_class="sandbox")
    with run.writer():
        run.add(failed)
    with served(tmp_path / "runs") as address, httpx.stream("GET", f"{address}api/events") as live:
        with run.writer():
            lines = (line for line in live.iter_lines() if line.startswith("data: "))
            for done in range(4):
                deadline = time.monotonic() + 60
                state: tuple[object, ...] = ()
                while state != (done, 1, True):
                    assert time.monotonic() < deadline
                    seen = json.loads(next(lines)[6:])
                    state = seen["done"], seen["indexed"], seen["running"]
                assert seen["num_errors"] == int(done == 0)
                assert (bool(seen["rate_per_min"]), bool(seen["eta_s"])) == (done > 1, done == 2)
                if done < 3:
                    now = datetime.now(UTC).isoformat()
                    run.add(Trajectory(task_id="abc"[next(added)], started_at=now, duration_s=0.1))
        assert httpx.get(f"{address}api/runs").json()["runs"][0]["done"] == 3
        shutil.rmtree(run.path)
        assert "gone" in json.loads(next(lines)[6:])["caveats"][0]


def test_a_run_goes_on_while_its_lock_is_held(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = {"tasks": {"source": "bundled", "task_ids": ["a", "b"]}, "created_at": "now"}
    run = RunFolder.create(tmp_path / "run", config)
    (shown,) = Runs([run.path]).by_id.values()
    assert not shown.summary()["running"]
    with run.writer():
        run.add(Trajectory(task_id="a", error="lost", error_class="sandbox"))
        (run.path / "report.json").touch()
        shown.index.complete()
        assert shown.summary()["running"]
    assert not shown.summary()["running"]
    monkeypatch.setattr("fcntl.flock", Mock(side_effect=OSError(errno.ENOLCK, "no locks")))
    assert shown.summary()["running"]  # an attempt is left
    with (run.path / "index.jsonl").open("a", encoding="utf-8") as index:
        index.write(json.dumps(run.rows()["a", 0].to_json() | {"task_id": "b"}) + "\n")
    shown.index.complete()
    assert not shown.summary()["running"]
