"""Many threads meet a cache folder that nobody has used before."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

from coding_gym.workspace.host_git import HostGit


def test_threads_do_not_trip_over_each_others_first_use(tmp_path: Path) -> None:
    num_threads, rounds = 4, 50
    barrier = Barrier(num_threads)

    def use(number: int) -> list[str]:
        seen = []
        for attempt in range(rounds):
            barrier.wait()
            HostGit(tmp_path / str(attempt) / "git-settings")
            seen.append(f"{number} {attempt}")
        return seen

    with ThreadPoolExecutor(num_threads) as pool:
        done = [line for lines in pool.map(use, range(num_threads)) for line in lines]
    assert len(done) == num_threads * rounds
    assert [p.name for p in tmp_path.rglob("git-settings*") if p.name != "git-settings"] == []
