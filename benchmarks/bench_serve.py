"""A server of episodes: memory of many sessions, latency, and what faults leave behind.

    python benchmarks/bench_serve.py --sessions 1000 --requests 100000

The server is `coding-gym serve` in a process of its own, and everything goes through its public
interface on loopback. Latency is compared with an env in this process, by turns. Of the requests
under faults a third are honest, and the others are clients that hang up before the answer, send a
part of a request or a few bytes at a time, or something that is none.
"""

import json
import os
import random
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import urlsplit

import gymnasium as gym
from bench_vector import descendants
from figures import Figure, interleaved, median, parser, progress, ratio, report

from coding_gym.errors import CodingGymError
from coding_gym.serve import RemoteEnv
from coding_gym.serve.client import TOKEN

ACTION = '{"name": "shell", "arguments": {"cmd": "echo hello"}}'
SANDBOX_MB = 1.5  # what a sandbox takes anyway
SECRET = "of-the-benchmark"  # noqa: S105 - nothing else listens to it
IDLE_S = 20


@contextmanager
def server(port: int) -> Iterator[subprocess.Popen[bytes]]:
    """Runs ``coding-gym serve`` until the end of the block."""
    main = "from coding_gym.cli.app import main; main()"
    options = ["--port", str(port), "--idle", str(IDLE_S), "--max-sessions", "5000"]
    command = [sys.executable, "-c", main, "serve", *options]
    os.environ[TOKEN] = SECRET
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
        try:
            while process.poll() is None:
                with suppress(OSError):
                    socket.create_connection(("127.0.0.1", port)).close()
                    break
                time.sleep(0.1)
            yield process
        finally:
            process.kill()


def private_mb(pid: int) -> float:
    """Returns the memory of a process and all below it, in MB; shared pages count once (PSS)."""
    total = 0
    for one in descendants(pid):
        with suppress(OSError):
            rollup = Path(f"/proc/{one}/smaps_rollup").read_text()
            total += next(int(line.split()[1]) for line in rollup.splitlines() if "Pss:" in line)
    return total / 1000


def many_sessions(url: str, pid: int, count: int) -> list[Figure]:
    """Opens sessions, each with an episode under way, and returns what they take."""
    before = private_mb(pid)
    with ThreadPoolExecutor(32) as pool:
        envs = list(pool.map(lambda _: RemoteEnv(url), range(count)))
        list(pool.map(lambda env: env.reset(seed=0), envs))
        began = time.perf_counter()
        list(pool.map(lambda env: env.step(ACTION), envs))
        rate = count / (time.perf_counter() - began)
        more = private_mb(pid) - before - count * SANDBOX_MB
        list(pool.map(lambda env: env.close(), envs))
    return [
        Figure(
            name=f"{count} sessions beyond {SANDBOX_MB} MB for each sandbox",
            value=round(more / 1000, 3),
            unit="GB",
            target=2.0,
        ),
        Figure(name="steps per second over all of them", value=round(rate, 1), unit=""),
    ]


def latency(url: str, rounds: int) -> list[Figure]:
    """Compares an env of the server with one here."""
    remote, local = RemoteEnv(url), gym.make("coding_gym:CodingRepair-v0", disable_env_checker=True)
    for env in (remote, local):
        env.reset(seed=0)
    resets = interleaved(
        {"remote": lambda: remote.reset(seed=0), "local": lambda: local.reset(seed=0)}, rounds
    )
    # Budgets of turns end episodes: a new one for each round of steps.
    steps: dict[str, list[float]] = {"remote": [], "local": []}
    for _ in range(max(1, rounds // 20)):
        remote.reset(seed=0)
        local.reset(seed=0)
        found = interleaved(
            {"remote": lambda: remote.step(ACTION), "local": lambda: local.step(ACTION)}, 20
        )
        for name, samples in found.items():
            steps[name] += samples
    remote.close()
    local.close()
    return [
        ratio("reset: server / here, p50", resets["remote"], resets["local"], 3.0),
        ratio("step: server / here, p50", steps["remote"], steps["local"], 2.0),
        median("step of the server", steps["remote"], "ms", None),
    ]


class Faults:
    """Requests, most of them broken, from several threads.

    Args:
        url: Of the server.
        count: How many.
    """

    def __init__(self, url: str, count: int) -> None:
        self._url, self._left, self._lock = url, count, threading.Lock()
        self.failures: list[str] = []

    def run(self, threads: int = 8) -> None:
        """Sends them."""
        workers = [threading.Thread(target=self._work, args=(n,)) for n in range(threads)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()

    def _take(self) -> bool:
        with self._lock:
            self._left -= 1
            return self._left >= 0

    def _work(self, seed: int) -> None:
        draws, env = random.Random(seed), RemoteEnv(self._url)  # noqa: S311 - no secret
        env.reset(seed=seed)
        victim = _opened(self._url)
        slow = SlowClient(self._url, _request(victim))
        while self._take():
            kind = draws.choice(["step", "step", "hang up", "cut", "noise", "leave", "slow"])
            try:
                if kind == "step":
                    if any(env.step(ACTION)[2:4]):
                        env.reset()
                elif kind == "leave":
                    if draws.random() < 0.02:  # a session that nobody closes
                        env = RemoteEnv(self._url)
                        env.reset(seed=seed)
                elif kind == "slow":
                    slow.go_on()
                else:
                    self._break(kind, draws, victim)
            except (CodingGymError, OSError) as problem:
                with self._lock:
                    self.failures.append(repr(problem))
        env.close()
        slow.close()

    def _break(self, kind: str, draws: random.Random, session: str) -> None:
        text = _request(session)
        sent = {
            "hang up": text,
            "cut": text[: draws.randrange(len(text))],
            "noise": draws.randbytes(200),
        }[kind]
        with _connection(self._url) as link:
            link.sendall(sent)


class SlowClient:
    """Sends a request a few bytes at a time, reads a part of the answer as slowly, and begins anew.

    Args:
        url: Of the server.
        request: What it sends.
    """

    def __init__(self, url: str, request: bytes) -> None:
        self._url, self._request = url, request
        self._link, self._num_sent, self._num_read = _connection(url), 0, 0

    def go_on(self) -> None:
        """Sends the next bytes, or reads the next."""
        if self._num_sent < len(self._request):
            self._link.sendall(self._request[self._num_sent : self._num_sent + 24])
            self._num_sent += 24
        elif self._num_read < 5 and self._link.recv(16):
            self._num_read += 1
        else:
            self._link.close()
            self._link, self._num_sent, self._num_read = _connection(self._url), 0, 0

    def close(self) -> None:
        """Hangs up."""
        self._link.close()


def _connection(url: str) -> socket.socket:
    address = urlsplit(url)
    return socket.create_connection((address.hostname, address.port))


def _request(session: str) -> bytes:
    """Returns a step of a session, as it is sent."""
    body = json.dumps({"action": ACTION})
    path = f"/v1/sessions/{session}/step"
    head = f"POST {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {SECRET}\r\n"
    return f"{head}Content-Length: {len(body)}\r\n\r\n{body}".encode()


def _opened(url: str) -> str:
    """Returns a session in which requests are cut off; nobody closes it."""
    headers = {"Authorization": f"Bearer {SECRET}"}
    asked = urllib.request.Request(f"{url}/v1/sessions", b"{}", headers)  # noqa: S310 - our own
    with urllib.request.urlopen(asked) as answer:  # noqa: S310
        return str(json.load(answer)["session"])


def under_faults(url: str, pid: int, count: int) -> list[Figure]:
    """Sends requests under faults, waits for idle sessions to close, and counts what is left."""
    Faults(url, 200).run()  # warms up
    _settled(pid)
    before, sockets, processes = private_mb(pid), _num_sockets(pid), _num_processes(pid)
    faults = Faults(url, count)
    began = time.perf_counter()
    faults.run()
    took = time.perf_counter() - began
    _settled(pid)
    return [
        Figure(name="requests under faults", value=count, unit="", details={"s": round(took, 1)}),
        Figure(
            name="honest requests that failed",
            value=len(faults.failures),
            target=0,
            details={"first": faults.failures[:3]},
        ),
        Figure(name="processes left", value=_num_processes(pid) - processes, target=0),
        Figure(name="sockets left", value=_num_sockets(pid) - sockets, target=0),
        Figure(name="memory more than before", value=round(private_mb(pid) - before, 1), unit="MB"),
    ]


def _settled(pid: int) -> None:
    """Waits until the processes are as few as they stay: idle sessions close after `IDLE_S`."""
    time.sleep(IDLE_S + 5)
    before = sys.maxsize
    while (now := _num_processes(pid)) < before:
        before = now
        time.sleep(2)


def _num_sockets(pid: int) -> int:
    links = (str(path.readlink()) for path in Path(f"/proc/{pid}/fd").iterdir())
    return sum(link.startswith("socket:") for link in links)


def _num_processes(pid: int) -> int:
    return sum(1 for _ in descendants(pid))


def killed(process: subprocess.Popen[bytes], url: str) -> list[Figure]:
    """Kills the server while it has sandboxes, and counts the processes that outlive it."""
    envs = [RemoteEnv(url) for _ in range(16)]
    for env in envs:
        env.reset(seed=0)
    running = list(descendants(process.pid))
    process.send_signal(signal.SIGKILL)
    process.wait()
    until = time.monotonic() + 30
    while time.monotonic() < until and any(Path(f"/proc/{pid}").exists() for pid in running):
        time.sleep(0.1)
    left = [pid for pid in running if Path(f"/proc/{pid}").exists()]
    masked = sum(env.step(ACTION)[4]["mask_sample"] for env in envs)
    for env in envs:
        env.close()
    return [
        Figure(name="processes that outlive a killed server", value=len(left), target=0),
        Figure(name="its episodes that are masked, of 16", value=masked, target=16, is_floor=True),
    ]


def main() -> None:
    """Measures, prints and keeps the figures."""
    made = parser(__doc__, rounds=100)
    made.add_argument("--sessions", type=int, default=1000, help="open at once (default 1000)")
    made.add_argument("--requests", type=int, default=100_000, help="under faults (100000)")
    made.add_argument("--port", type=int, default=7599, help="of the server (default 7599)")
    options = made.parse_args()
    url, found = f"http://127.0.0.1:{options.port}", []
    with server(options.port) as process:
        progress("latency")
        found += latency(url, options.rounds)
        progress(f"{options.sessions} sessions")
        found += many_sessions(url, process.pid, options.sessions)
        progress(f"{options.requests} requests under faults")
        found += under_faults(url, process.pid, options.requests)
        progress("SIGKILL")
        found += killed(process, url)
    report("serve", found, options, rounds=options.rounds)


if __name__ == "__main__":
    main()
