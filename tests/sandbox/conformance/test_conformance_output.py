"""Results of a command: exit code, output, truncation."""

from sandbox_fixtures import opened, output

from coding_gym.sandbox.protocol import Sandbox, SandboxBackend


def test_exit_codes_come_through(backend: SandboxBackend) -> None:
    with opened(backend, {"file": ""}) as sandbox:
        assert sandbox.run("exit 7").exit_code == 7
        assert sandbox.run("exit 255").exit_code == 255
        assert sandbox.run("no-such-command").exit_code == 127
        assert sandbox.run("./file").exit_code == 126
        assert sandbox.run("if").exit_code == 2
        assert sandbox.run("").exit_code == 0
        assert sandbox.run("true | false | (exit 5)").exit_code == 5


def test_signals_are_converted_to_exit_codes(sandbox: Sandbox) -> None:
    for name, number in (("TERM", 15), ("KILL", 9), ("ABRT", 6)):
        result = sandbox.run(f"kill -{name} $$")
        assert (result.exit_code, result.timed_out) == (128 + number, False)
    assert sandbox.run("bash -c 'kill -SEGV $$'; exit $?").exit_code == 128 + 11


def test_a_broken_pipe_ends_the_writer_quietly(sandbox: Sandbox) -> None:
    result = sandbox.run("yes | head -1; echo ${PIPESTATUS[0]}", timeout_s=20)
    assert result.output == "y\n141\n"


def test_output_and_errors_are_merged_in_order(sandbox: Sandbox) -> None:
    assert output(sandbox, "echo 1; echo 2 >&2; echo 3") == "1\n2\n3\n"


def test_output_without_a_last_newline_is_kept_as_it_is(sandbox: Sandbox) -> None:
    assert output(sandbox, "printf 'a\\nb'") == "a\nb"
    assert output(sandbox, "printf '\\n\\n'") == "\n\n"
    assert output(sandbox, "true") == ""


def test_control_characters_in_output_are_kept(sandbox: Sandbox) -> None:
    text = output(sandbox, r"printf 'a\r\nb\0c\033[31md\177\b'")
    assert text == "a\r\nb\0c\x1b[31md\x7f\b"


def test_unicode_passes_both_ways(sandbox: Sandbox) -> None:
    text = "é ☂ 🐛 \u202e עברית"
    assert output(sandbox, f"echo '{text}'") == f"{text}\n"
    assert output(sandbox, "x='é☂🐛'; echo ${#x}") == "3\n"


def test_bytes_that_are_not_utf8_are_replaced(sandbox: Sandbox) -> None:
    assert output(sandbox, r"printf 'a\xffb\xc3\xa9'") == "a\ufffdbé"
    assert output(sandbox, r"printf '\xe2\x98'") == "\ufffd"


def test_a_lone_surrogate_in_a_command_is_data(sandbox: Sandbox) -> None:
    assert sandbox.run("true '\ud800'").exit_code == 0
    assert output(sandbox, "printf '\ud800' | wc -c").strip() == "3"
    assert output(sandbox, "echo next") == "next\n"


def test_long_output_keeps_its_head_and_its_tail(sandbox: Sandbox) -> None:
    result = sandbox.run("echo first; seq 100000; echo last", max_output_bytes=1000)
    lines = result.output.splitlines()
    assert result.truncated
    assert (lines[0], lines[-1]) == ("first", "last")
    assert "bytes left out" in result.output
    assert len(result.output) < 1100
    cut = sandbox.run("printf 'é%.0s' {1..100}", max_output_bytes=10).output
    assert (cut[:2], cut[-2:], "\ufffd" in cut) == ("éé", "éé", False)


def test_output_at_the_limit_is_whole(sandbox: Sandbox) -> None:
    result = sandbox.run("printf 0123456789", max_output_bytes=10)
    assert (result.output, result.truncated) == ("0123456789", False)
    over = sandbox.run("printf 0123456789x", max_output_bytes=10)
    assert over.truncated


def test_a_flood_of_output_is_bounded_by_default(sandbox: Sandbox) -> None:
    result = sandbox.run("head -c 32M /dev/zero; printf end", timeout_s=60)
    assert (result.exit_code, result.timed_out) == (0, False)
    assert result.truncated
    assert 1 << 19 < len(result.output) < 1 << 21
    assert result.output[-3:] == "end"


def test_output_of_a_process_substitution_arrives(sandbox: Sandbox) -> None:
    assert output(sandbox, "echo abc > >(tr a-c A-C)") == "ABC\n"


def test_output_after_the_shell_closed_its_own_is_waited_for(sandbox: Sandbox) -> None:
    result = sandbox.run("echo seen; exec > file 2>&1; echo in the file; exit 3")
    assert (result.exit_code, result.output) == (3, "seen\n")
    assert sandbox.read_file("file") == b"in the file\n"


def test_durations_are_those_of_the_command(sandbox: Sandbox) -> None:
    result = sandbox.run("sleep 0.3")
    assert result.duration_s >= 0.3
    assert result.duration_s < 20
