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


def test_output_is_kept_as_it_is(sandbox: Sandbox) -> None:
    text = "é ☂ 🐛 \u202e עברית"
    for command, expected in (
        ("echo 1; echo 2 >&2; echo 3", "1\n2\n3\n"),
        ("printf 'a\\nb'", "a\nb"),
        ("printf '\\n\\n'", "\n\n"),
        (r"printf 'a\r\nb\0c\033[31md\177\b'", "a\r\nb\0c\x1b[31md\x7f\b"),
        (f"echo '{text}'", f"{text}\n"),
        ("x='é☂🐛'; echo ${#x}", "3\n"),
        (r"printf 'a\xffb\xc3\xa9'", "a\ufffdbé"),
        (r"printf '\xe2\x98'", "\ufffd"),
        ("printf '\ud800' | wc -c | tr -d ' '", "3\n"),
        ("echo abc > >(tr a-c A-C)", "ABC\n"),
    ):
        assert output(sandbox, command) == expected


def test_long_output_keeps_its_head_and_its_tail(sandbox: Sandbox) -> None:
    result = sandbox.run("echo first; seq 100000; echo last", max_output_bytes=1000)
    lines = result.output.splitlines()
    assert result.truncated
    assert (lines[0], lines[-1]) == ("first", "last")
    assert "bytes left out" in result.output
    assert len(result.output) < 1100
    cut = sandbox.run("printf 'é%.0s' {1..100}", max_output_bytes=10).output
    assert (cut[:2], cut[-2:], "\ufffd" in cut) == ("éé", "éé", False)
    for text, is_cut in (("0123456789", False), ("0123456789x", True)):
        assert sandbox.run(f"printf {text}", max_output_bytes=10).truncated is is_cut


def test_a_flood_of_output_is_bounded_by_default(sandbox: Sandbox) -> None:
    result = sandbox.run("head -c 32M /dev/zero; printf end", timeout_s=60)
    assert (result.exit_code, result.timed_out) == (0, False)
    assert result.truncated
    assert 1 << 19 < len(result.output) < 1 << 21
    assert result.output[-3:] == "end"


def test_output_after_the_shell_closed_its_own_is_waited_for(sandbox: Sandbox) -> None:
    result = sandbox.run("echo seen; exec > file 2>&1; echo in the file; exit 3")
    assert (result.exit_code, result.output) == (3, "seen\n")
    assert sandbox.read_file("file") == b"in the file\n"
