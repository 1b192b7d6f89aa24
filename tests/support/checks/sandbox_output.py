"""Checks of what a command gives back: exit codes, output, and how that is cut."""

# The names of the checks say what others say in docstrings.

from checks.claims import claim, expect, opened, output
from coding_gym.sandbox.protocol import SandboxBackend


@claim()
def exit_codes_come_through(backend: SandboxBackend) -> None:
    with opened(backend, {"file": ""}) as sandbox:
        expect("exit", sandbox.run("exit 7").exit_code, 7)
        expect("the largest", sandbox.run("exit 255").exit_code, 255)
        expect("unknown command", sandbox.run("no-such-command").exit_code, 127)
        expect("not executable", sandbox.run("./file").exit_code, 126)
        expect("syntax error", sandbox.run("if").exit_code, 2)
        expect("empty command", sandbox.run("").exit_code, 0)
        expect("the last of a pipeline", sandbox.run("true | false | (exit 5)").exit_code, 5)


@claim()
def signals_are_converted_to_exit_codes(backend: SandboxBackend) -> None:
    with opened(backend) as sandbox:
        for name, number in (("TERM", 15), ("KILL", 9), ("ABRT", 6)):
            result = sandbox.run(f"kill -{name} $$")
            expect(name, (result.exit_code, result.timed_out), (128 + number, False))
        expect("of a child", sandbox.run("bash -c 'kill -SEGV $$'; exit $?").exit_code, 128 + 11)


@claim()
def a_broken_pipe_ends_the_writer_quietly(backend: SandboxBackend) -> None:
    with opened(backend) as sandbox:
        result = sandbox.run("yes | head -1; echo ${PIPESTATUS[0]}", timeout_s=20)
        expect("output", result.output, "y\n141\n")


@claim()
def output_and_errors_are_merged_in_order(backend: SandboxBackend) -> None:
    with opened(backend) as sandbox:
        expect("output", output(sandbox, "echo 1; echo 2 >&2; echo 3"), "1\n2\n3\n")


@claim()
def output_without_a_last_newline_is_kept_as_it_is(backend: SandboxBackend) -> None:
    with opened(backend) as sandbox:
        expect("partial line", output(sandbox, "printf 'a\\nb'"), "a\nb")
        expect("only newlines", output(sandbox, "printf '\\n\\n'"), "\n\n")
        expect("nothing", output(sandbox, "true"), "")


@claim()
def control_characters_in_output_are_kept(backend: SandboxBackend) -> None:
    with opened(backend) as sandbox:
        text = output(sandbox, r"printf 'a\r\nb\0c\033[31md\177\b'")
        expect("output", text, "a\r\nb\0c\x1b[31md\x7f\b")


@claim()
def unicode_passes_both_ways(backend: SandboxBackend) -> None:
    with opened(backend) as sandbox:
        text = "é ☂ 🐛 \u202e עברית"
        expect("output", output(sandbox, f"echo '{text}'"), f"{text}\n")
        expect("characters", output(sandbox, "x='é☂🐛'; echo ${#x}"), "3\n")


@claim()
def bytes_that_are_not_utf8_are_replaced(backend: SandboxBackend) -> None:
    with opened(backend) as sandbox:
        expect("output", output(sandbox, r"printf 'a\xffb\xc3\xa9'"), "a\ufffdbé")
        expect("a cut character", output(sandbox, r"printf '\xe2\x98'"), "\ufffd")


@claim()
def a_lone_surrogate_in_a_command_is_data(backend: SandboxBackend) -> None:
    with opened(backend) as sandbox:
        expect("exit code", sandbox.run("true '\ud800'").exit_code, 0)
        expect("its bytes", output(sandbox, "printf '\ud800' | wc -c").strip(), "3")
        expect("the next command", output(sandbox, "echo next"), "next\n")


@claim()
def long_output_keeps_its_head_and_its_tail(backend: SandboxBackend) -> None:
    with opened(backend) as sandbox:
        result = sandbox.run("echo first; seq 100000; echo last", max_output_bytes=1000)
        lines = result.output.splitlines()
        expect("truncated", result.truncated, True)
        expect("head and tail", (lines[0], lines[-1]), ("first", "last"))
        expect("says how much is missing", "bytes left out" in result.output, True)
        expect("bounded", len(result.output) < 1100, True)


@claim()
def output_at_the_limit_is_whole(backend: SandboxBackend) -> None:
    with opened(backend) as sandbox:
        result = sandbox.run("printf 0123456789", max_output_bytes=10)
        expect("output", (result.output, result.truncated), ("0123456789", False))
        over = sandbox.run("printf 0123456789x", max_output_bytes=10)
        expect("one more", over.truncated, True)


@claim()
def a_flood_of_output_is_bounded_by_default(backend: SandboxBackend) -> None:
    with opened(backend) as sandbox:
        result = sandbox.run("head -c 32M /dev/zero; printf end", timeout_s=60)
        expect("end", (result.exit_code, result.timed_out), (0, False))
        expect("truncated", result.truncated, True)
        expect("size", 1 << 19 < len(result.output) < 1 << 21, True)
        expect("tail", result.output[-3:], "end")


@claim()
def output_of_a_process_substitution_arrives(backend: SandboxBackend) -> None:
    with opened(backend) as sandbox:
        expect("output", output(sandbox, "echo abc > >(tr a-c A-C)"), "ABC\n")


@claim()
def output_after_the_shell_closed_its_own_is_waited_for(backend: SandboxBackend) -> None:
    with opened(backend) as sandbox:
        result = sandbox.run("echo seen; exec > file 2>&1; echo in the file; exit 3")
        expect("result", (result.exit_code, result.output), (3, "seen\n"))
        expect("file", sandbox.read_file("file"), b"in the file\n")


@claim()
def durations_are_those_of_the_command(backend: SandboxBackend) -> None:
    with opened(backend) as sandbox:
        result = sandbox.run("sleep 0.3")
        expect("at least", result.duration_s >= 0.3, True)
        expect("at most", result.duration_s < 20, True)
