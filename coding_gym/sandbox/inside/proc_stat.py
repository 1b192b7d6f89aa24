"""The one parser of ``/proc/PID/stat``, for the owner's side and for the processes inside."""

# Indices of `fields`; proc(5) counts from 1 and has the pid and the name before them.
STATE, PARENT, GROUP, NUM_THREADS, START_TIME = 0, 1, 2, 17, 19


def fields(pid: object) -> list[str]:
    """Returns the fields of a process that follow its name; none where there is no such process.

    Args:
        pid: Its id, or ``"self"``.
    """
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            return file.read().rpartition(")")[2].split()  # a name may hold anything, also ")"
    except OSError:
        return []
