"""Checks of a sandbox's commands: exit codes, output, time limits, environment, ends."""

# The names of the checks say what others say in docstrings.
# ruff: noqa: D103

import os
import threading

from coding_gym.errors import InvalidArgumentError, SandboxError
from coding_gym.sandbox.protocol import SandboxBackend
from coding_gym.sandbox.spec import SandboxSpec
from coding_gym.testing.claims import claim, expect, expect_error, opened, output


@claim
def exit_codes_come_through(backend: SandboxBackend) -> None:
    with opened(backend) as sandbox:
        expect("exit", sandbox.run("exit 7").exit_code, 7)
        expect("signal", sandbox.run("kill -TERM $$").exit_code, 128 + 15)
        expect("unknown command", sandbox.run("no-such-command").exit_code, 127)
        expect("syntax error", sandbox.run("if").exit_code, 2)
        expect("empty command", sandbox.run("").exit_code, 0)


@claim
def output_and_errors_are_merged_in_order(backend: SandboxBackend) -> None:
    with opened(backend) as sandbox:
        expect("output", output(sandbox, "echo 1; echo 2 >&2; echo 3"), "1\n2\n3\n")


@claim
def bytes_that_are_not_utf8_are_replaced(backend: SandboxBackend) -> None:
    with opened(backend) as sandbox:
        expect("output", output(sandbox, r"printf 'a\xffb\xc3\xa9'"), "a\ufffdbé")


@claim
def long_output_keeps_its_head_and_its_tail(backend: SandboxBackend) -> None:
    with opened(backend) as sandbox:
        result = sandbox.run("echo first; seq 100000; echo last", max_output_bytes=1000)
        lines = result.output.splitlines()
        expect("truncated", result.truncated, True)
        expect("head and tail", (lines[0], lines[-1]), ("first", "last"))
        expect("says how much is missing", "bytes left out" in result.output, True)
        expect("bounded", len(result.output) < 1100, True)


@claim
def output_at_the_limit_is_whole(backend: SandboxBackend) -> None:
    with opened(backend) as sandbox:
        result = sandbox.run("printf 0123456789", max_output_bytes=10)
        expect("output", (result.output, result.truncated), ("0123456789", False))


@claim
def a_timeout_kills_everything_and_the_sandbox_goes_on(backend: SandboxBackend) -> None:
    with opened(backend) as sandbox:
        result = sandbox.run("echo begun; trap '' TERM; sleep 60 & sleep 60", timeout_s=0.5)
        expect("result", (result.timed_out, result.exit_code), (True, 124))
        expect("output so far", result.output, "begun\n")
        expect("bounded", result.duration_s < 30, True)
        expect("the next command", output(sandbox, "echo next"), "next\n")


@claim
def a_timeout_holds_when_the_output_is_closed(backend: SandboxBackend) -> None:
    with opened(backend) as sandbox:
        result = sandbox.run("exec >&- 2>&-; sleep 60", timeout_s=0.5)
        expect("result", (result.timed_out, result.exit_code), (True, 124))


@claim
def what_is_left_running_is_killed_and_counted(backend: SandboxBackend) -> None:
    with opened(backend) as sandbox:
        result = sandbox.run("sleep 300 & echo $!")
        expect("leftovers", (result.num_leftovers, result.exit_code), (1, 0))
        running = sandbox.run(f"grep '^State:.[^ZX]' /proc/{int(result.output)}/status 2>/dev/null")
        expect("what is running", running.output, "")
        expect("none are left by a plain command", sandbox.run("true | true").num_leftovers, 0)


@claim
def output_of_a_process_substitution_arrives(backend: SandboxBackend) -> None:
    with opened(backend) as sandbox:
        expect("output", output(sandbox, "echo abc > >(tr a-c A-C)"), "ABC\n")


@claim
def standard_input_is_what_was_given(backend: SandboxBackend) -> None:
    with opened(backend) as sandbox:
        data = bytes(range(256)) * 1000
        expect("bytes", sandbox.run("wc -c", stdin=data).output.strip(), str(len(data)))
        expect("nothing by default", sandbox.run("read line").exit_code, 1)


@claim
def commands_run_where_they_are_told(backend: SandboxBackend) -> None:
    with opened(backend, {"folder/file": ""}) as sandbox:
        expect("relative", sandbox.run("ls", cwd="folder").output, "file\n")
        absolute = f"{sandbox.workdir}/folder"
        expect("absolute", sandbox.run("ls", cwd=absolute).output, "file\n")
        missing = sandbox.run("ls", cwd="nowhere")
        expect("missing", (missing.exit_code, "nowhere" in missing.output), (1, True))
        expect("no memory of it", output(sandbox, "pwd"), f"{sandbox.workdir}\n")


@claim
def no_state_of_the_shell_is_kept(backend: SandboxBackend) -> None:
    with opened(backend) as sandbox:
        output(sandbox, "cd /; export KEPT=1; umask 777")
        expect("state", output(sandbox, 'echo "$KEPT"; pwd'), f"\n{sandbox.workdir}\n")


@claim
def variables_come_from_the_spec_and_the_call(backend: SandboxBackend) -> None:
    with backend.open(SandboxSpec(env={"A": "spec", "B": "spec"}, path=("/x/bin",))) as sandbox:
        result = sandbox.run('echo "$A $B"; echo "${PATH%%:*}"', env={"B": "call"})
        expect("variables", result.output, "spec call\n/x/bin\n")
        expect("only that call", output(sandbox, 'echo "$B"'), "spec\n")


@claim
def the_environment_is_fixed_and_holds_nothing_of_the_host(backend: SandboxBackend) -> None:
    name = "CODING_GYM_CHECK_SECRET"
    os.environ[name] = "x"
    try:
        with opened(backend) as sandbox:
            names = output(sandbox, "env -0 | tr '\\n\\0' ' \\n' | cut -d= -f1").split()
            expect("the host's variable", name in names, False)
            fixed = output(sandbox, 'echo "$TZ $PYTHONHASHSEED $TERM $PAGER $COLUMNS"')
            expect("fixed variables", fixed, "UTC 0 dumb cat 80\n")
    finally:
        del os.environ[name]


@claim
def commands_longer_than_one_argument_run(backend: SandboxBackend) -> None:
    with opened(backend) as sandbox:
        text = "x" * (300 << 10)
        expect(
            "length",
            output(sandbox, f"echo {text} | wc -c; read || echo eof"),
            f"{len(text) + 1}\neof\n",
        )


@claim
def arguments_out_of_range_are_refused(backend: SandboxBackend) -> None:
    with opened(backend) as sandbox:
        kind = InvalidArgumentError
        expect_error("NUL", kind, lambda: sandbox.run("echo \0"))
        expect_error("no time", kind, lambda: sandbox.run("true", timeout_s=0))
        expect_error("endless time", kind, lambda: sandbox.run("true", timeout_s=float("inf")))
        expect_error("no output", kind, lambda: sandbox.run("true", max_output_bytes=0))
        expect_error("variable", kind, lambda: sandbox.run("true", env={"A=B": ""}))
        expect("a lone surrogate is data", sandbox.run("true '\ud800'").exit_code, 0)
        expect("the next command", output(sandbox, "echo next"), "next\n")


@claim
def calls_may_come_from_any_thread(backend: SandboxBackend) -> None:
    outputs: list[str] = []
    with opened(backend) as sandbox:
        thread = threading.Thread(target=lambda: outputs.append(output(sandbox, "echo thread")))
        thread.start()
        thread.join()
    expect("output", outputs, ["thread\n"])


@claim
def a_closed_sandbox_says_so_and_closes_twice(backend: SandboxBackend) -> None:
    with opened(backend) as sandbox:
        sandbox.close()
        sandbox.close()
        expect_error("run", SandboxError, lambda: sandbox.run("true"))
        expect_error("read", SandboxError, lambda: sandbox.read_file("file"))
        expect_error("write", SandboxError, lambda: sandbox.write_file("file", b""))
