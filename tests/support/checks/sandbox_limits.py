"""Checks of a sandbox's bounds: disk, files, processes, memory, processors."""

# The names of the checks say what others say in docstrings.

import time

from checks.claims import claim, expect, expect_error, opened, output, python_output
from coding_gym.sandbox.protocol import Promise, SandboxBackend
from coding_gym.sandbox.spec import SandboxLimits

_MIB = 1 << 20
# No less: an interpreter and the shells around it must fit.
_MEMORY = SandboxLimits(memory_bytes=128 * _MIB)


@claim(Promise.DISK_LIMIT)
def the_disk_limit_holds_and_old_files_survive_it(backend: SandboxBackend) -> None:
    limits = SandboxLimits(disk_bytes=4 * _MIB)
    with opened(backend, {"kept": "old"}, limits=limits) as sandbox:
        full = lambda: sandbox.write_file("kept", bytes(8 * _MIB))  # noqa: E731 - as below
        expect_error("replacing a file", OSError, full)
        expect("kept", sandbox.read_file("kept"), b"old")
        result = sandbox.run("head -c 8M /dev/zero > large; rm -f large")
        expect("says so", "No space left" in result.output or "quota" in result.output, True)
        expect("room again", output(sandbox, "echo x > small; cat small"), "x\n")
        home = sandbox.run("head -c 8M /dev/zero > ~/large; rm -f ~/large")
        expect("says so of home", "No space left" in home.output or "quota" in home.output, True)


@claim(Promise.PRIVATE_TMP)
def temporary_files_are_bounded(backend: SandboxBackend) -> None:
    with opened(backend, limits=SandboxLimits(disk_bytes=4 * _MIB)) as sandbox:
        result = sandbox.run("file=$(mktemp); head -c 8M /dev/zero > $file; rm -f $file")
        expect("says so", "No space left" in result.output, True)


@claim(Promise.INODE_LIMIT)
def the_number_of_files_is_bounded(backend: SandboxBackend) -> None:
    with opened(backend, limits=SandboxLimits(num_inodes=300)) as sandbox:
        result = sandbox.run("for i in {1..500}; do : > $i || break; done; rm -f [0-9]*")
        expect("says so", "No space left" in result.output or "quota" in result.output, True)
        output(sandbox, "echo room > again")


@claim()
def the_size_of_a_file_is_bounded(backend: SandboxBackend) -> None:
    with opened(backend, limits=SandboxLimits(file_bytes=_MIB)) as sandbox:
        result = sandbox.run("head -c 2M /dev/zero > large; stat -c %s large")
        expect("size", result.output.splitlines()[-1], str(_MIB))


@claim()
def open_files_are_bounded(backend: SandboxBackend) -> None:
    script = (
        "import errno, os\n"
        "taken = []\n"
        "try:\n"
        "    while len(taken) < 200: taken.append(os.open('/dev/null', os.O_RDONLY))\n"
        "except OSError as error: print(errno.errorcode[error.errno])\n"
    )
    with opened(backend, python=True, limits=SandboxLimits(num_open_files=64)) as sandbox:
        expect("error", python_output(sandbox, script), "EMFILE\n")


@claim(Promise.PROCESS_LIMIT)
def the_number_of_processes_is_bounded(backend: SandboxBackend) -> None:
    script = (
        "import errno, os, time\n"
        "try:\n"
        "    for _ in range(60):\n"
        "        if os.fork() == 0: time.sleep(5); os._exit(0)\n"
        "except OSError as error: print(errno.errorcode[error.errno], flush=True)\n"
    )
    with opened(backend, python=True, limits=SandboxLimits(num_processes=20)) as sandbox:
        expect("error", python_output(sandbox, script), "EAGAIN\n")
        expect("the next command", output(sandbox, "echo next | cat"), "next\n")


@claim(Promise.MEMORY_LIMIT)
def memory_is_bounded_and_the_sandbox_goes_on(backend: SandboxBackend) -> None:
    script = "import time\ntaken = b'x' * (300 << 20)\ntime.sleep(2)\nprint('kept')\n"
    with opened(backend, python=True, limits=_MEMORY) as sandbox:
        sandbox.write_file("take.py", script.encode())
        result = sandbox.run("python take.py")
        expect("what it kept", "kept" in result.output, False)
        expect("ended well", result.exit_code == 0, False)
        expect("timed out", result.timed_out, False)
        expect("the next command", output(sandbox, "echo next"), "next\n")


@claim(Promise.MEMORY_LIMIT)
def memory_is_that_of_all_processes_together(backend: SandboxBackend) -> None:
    script = (
        "import os, time\n"
        "children = []\n"
        "for _ in range(4):\n"
        "    children.append(os.fork())\n"
        "    if not children[-1]: break\n"
        "taken = b'x' * (70 << 20)\n"
        "time.sleep(2)\n"
        "print('kept', flush=True)\n"
        "for pid in children if all(children) else []: os.waitpid(pid, 0)\n"
    )
    with opened(backend, python=True, limits=_MEMORY) as sandbox:
        sandbox.write_file("take.py", script.encode())
        result = sandbox.run("python take.py")
        expect("how many kept theirs", result.output.count("kept") < 5, True)
        expect("the next command", output(sandbox, "echo next"), "next\n")


@claim()
def memory_below_the_limit_is_available(backend: SandboxBackend) -> None:
    with opened(backend, python=True, limits=_MEMORY) as sandbox:
        script = "taken = b'x' * (60 << 20)\nprint('kept')\n"
        expect("output", python_output(sandbox, script), "kept\n")


@claim(Promise.CPU_LIMIT)
def processors_are_bounded(backend: SandboxBackend) -> None:
    script = "import time\nwhile time.process_time() < 0.1: pass\n"
    with opened(backend, python=True, limits=SandboxLimits(num_cpus=0.05)) as sandbox:
        taken = []
        for _ in range(3):  # at least one of them meets no load of other programs
            began = time.monotonic()
            python_output(sandbox, script, timeout_s=60)
            taken.append(time.monotonic() - began)
        expect("a tenth of a second took long", min(taken) > 1.2, True)
