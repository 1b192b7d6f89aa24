import threading

from coding_gym.process_cache import ProcessCache


def test_forked_child_waits_for_no_thread_of_its_parent() -> None:
    begun, may_end = threading.Event(), threading.Event()

    def wait() -> int:
        begun.set()
        assert may_end.wait(30)
        return 1

    cache = ProcessCache[int]()
    thread = threading.Thread(target=cache.get, args=("key", wait))
    thread.start()
    assert begun.wait(30)
    cache.after_fork()
    assert cache.get("key", lambda: 2) == 2
    may_end.set()
    thread.join()
