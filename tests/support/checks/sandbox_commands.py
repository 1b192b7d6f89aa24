"""Checks of what a command is given: its text, standard input, folder, variables."""

# The names of the checks say what others say in docstrings.

import os

from checks.claims import (
    claim,
    expect,
    expect_error,
    interpreter,
    opened,
    output,
)
from coding_gym.errors import InvalidArgumentError
from coding_gym.sandbox.protocol import Promise, SandboxBackend


@claim()
def standard_input_is_passed_unchanged(backend: SandboxBackend) -> None:
    with opened(backend) as sandbox:
        data = bytes(range(256)) * 1000
        expect("bytes", sandbox.run("wc -c", stdin=data).output.strip(), str(len(data)))
        expect("unread", sandbox.run("echo done", stdin=data).output, "done\n")
        expect("nothing by default", sandbox.run("read line").exit_code, 1)


@claim()
def python_source_runs_isolated(backend: SandboxBackend) -> None:
    source = "import os, sys; print(sys.stdin.read(), os.getcwd(), os.environ['A'], sys.argv)\n"
    source += "print('it\\'s', 'imported' if 'preloaded_check' in sys.modules else 'plain')\n"
    source += "try:\n    import startup\nexcept ImportError:\n    sys.exit(3)"
    files = dict.fromkeys(("startup.py", "sitecustomize.py"), "raise SystemExit(9)")
    with opened(backend, files, python=True, env={"PYTHONPATH": "."}) as sandbox:
        result = sandbox.run_python(source, stdin=b"text", env={"A": "one"})
        expect("output", result.output, f"text {sandbox.workdir} one ['-c']\nit's plain\n")
        expect("exit code", result.exit_code, 3)
        expect("of an error", sandbox.run_python("raise KeyError").exit_code, 1)
        expect("timeout", sandbox.run_python("while True: pass", timeout_s=0.5).timed_out, True)
        expect_error("a NUL", InvalidArgumentError, lambda: sandbox.run_python("\0"))
        expect_error("long", InvalidArgumentError, lambda: sandbox.run_python("#" * (1 << 17)))


@claim()
def commands_inherit_the_three_standard_descriptors_alone(backend: SandboxBackend) -> None:
    listing = "for n in {3..63}; do (exec <&$n) 2>/dev/null && echo $n; done"
    for shell in ("fresh", "waiting"):
        with opened(backend, shell=shell) as sandbox:
            for place in ("first command", "next command"):
                expect(f"{shell}, {place}", output(sandbox, f"{listing}; sleep 60 &"), "")


@claim()
def there_is_no_terminal(backend: SandboxBackend) -> None:
    with opened(backend) as sandbox:
        script = "for d in 0 1 2; do [ -t $d ] && echo $d; done; (: < /dev/tty) 2>&- && echo tty"
        expect("terminals", sandbox.run(script).output, "")


@claim()
def commands_run_in_the_folder_they_name(backend: SandboxBackend) -> None:
    with opened(backend, {"folder/file": ""}) as sandbox:
        expect("relative", sandbox.run("ls", cwd="folder").output, "file\n")
        absolute = f"{sandbox.workdir}/folder"
        expect("absolute", sandbox.run("ls", cwd=absolute).output, "file\n")
        expect("no memory of it", output(sandbox, "pwd"), f"{sandbox.workdir}\n")
        output(sandbox, "ln -s folder link")
        expect("through a link", sandbox.run("ls", cwd="link").output, "file\n")


@claim()
def a_folder_that_cannot_be_entered_is_data(backend: SandboxBackend) -> None:
    with opened(backend, {"file": ""}) as sandbox:
        for name in ("nowhere", "file"):
            result = sandbox.run("ls", cwd=name)
            expect(name, (result.exit_code, name in result.output), (1, True))
        output(sandbox, "mkdir gone")
        output(sandbox, 'rm -r "$PWD"', cwd="gone")
        expect("the next command", output(sandbox, "echo next"), "next\n")


@claim()
def no_state_of_the_shell_is_kept(backend: SandboxBackend) -> None:
    with opened(backend) as sandbox:
        output(sandbox, "cd /; export KEPT=1; umask 777; kept() { :; }; ulimit -n 20")
        expect("state", output(sandbox, 'echo "$KEPT"; pwd'), f"\n{sandbox.workdir}\n")
        expect("umask", output(sandbox, "umask"), "0022\n")
        expect("function", sandbox.run("kept").exit_code, 127)
        expect("limit", output(sandbox, "ulimit -n") != "20\n", True)


@claim()
def variables_come_from_the_spec_and_the_call(backend: SandboxBackend) -> None:
    with opened(backend, env={"A": "spec", "B": "spec"}, path=("/x/bin",)) as sandbox:
        result = sandbox.run('echo "$A $B"; echo "${PATH%%:*}"', env={"B": "call"})
        expect("variables", result.output, "spec call\n/x/bin\n")
        expect("only that call", output(sandbox, 'echo "$B"'), "spec\n")


@claim()
def values_of_variables_may_hold_anything(backend: SandboxBackend) -> None:
    values = {"EMPTY": "", "LINES_": "a\n'b'\n\"c\" $d `e` \\", "UNICODE": "é☂🐛", "SPACES": "  "}
    with opened(backend) as sandbox:
        for name, value in values.items():
            result = sandbox.run(f'printf %s "${name}"', env={name: value})
            expect(name, result.output, value)
        expect("bytes", sandbox.run('printf %s "$A" | wc -c', env={"A": "\udcff"}).output, "1\n")


@claim()
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


@claim()
def commands_longer_than_one_argument_run(backend: SandboxBackend) -> None:
    with opened(backend) as sandbox:
        text = "x" * (300 << 10)
        expect(
            "length",
            output(sandbox, f"echo {text} | wc -c; read || echo eof"),
            f"{len(text) + 1}\neof\n",
        )
        piped = sandbox.run(f": {text}; cat", stdin=b"given")
        expect("standard input", piped.output, "given")


@claim()
def commands_of_many_lines_run_as_one_script(backend: SandboxBackend) -> None:
    script = (
        "set -e\nfor i in 1 2; do\n  echo $i\ndone\ncat <<'END'\n$i \\ 'x'\nEND\n(exit 4)\necho no"
    )
    with opened(backend) as sandbox:
        result = sandbox.run(script)
        expect("result", (result.exit_code, result.output), (4, "1\n2\n$i \\ 'x'\n"))
        expect("a leading dash", sandbox.run("-x").exit_code, 127)


@claim()
def too_large_an_environment_is_data(backend: SandboxBackend) -> None:
    with opened(backend) as sandbox:
        result = sandbox.run("echo ran", env={"LARGE": "x" * (1 << 20)})
        expect("result", (result.exit_code, "too long" in result.output), (126, True))
        expect("the next command", output(sandbox, "echo next"), "next\n")


@claim()
def arguments_out_of_range_are_refused(backend: SandboxBackend) -> None:
    with opened(backend) as sandbox:
        kind = InvalidArgumentError
        expect_error("NUL", kind, lambda: sandbox.run("echo \0"))
        expect_error("no time", kind, lambda: sandbox.run("true", timeout_s=0))
        expect_error("endless time", kind, lambda: sandbox.run("true", timeout_s=float("inf")))
        expect_error("no output", kind, lambda: sandbox.run("true", max_output_bytes=0))
        expect_error("variable", kind, lambda: sandbox.run("true", env={"A=B": ""}))
        expect_error("length", kind, lambda: sandbox.run("x" * (2 << 20)))
        expect("the next command", output(sandbox, "echo next"), "next\n")


# An image may happen to have the same version.
@claim(Promise.OWN_PYTHON, is_moot=lambda: True)
def python_names_the_interpreter_of_the_spec(backend: SandboxBackend) -> None:
    with opened(backend, python=True) as sandbox:
        for name in ("python", "python3"):
            script = "import platform; print(platform.python_version())"
            expect(name, output(sandbox, f"{name} -c '{script}'").strip(), interpreter().version)
        expect("git and python", sandbox.run("git --version && python -c ''").exit_code, 0)


@claim()
def commands_own_what_the_layers_hold(backend: SandboxBackend) -> None:
    with opened(backend, {"folder/file": ""}) as sandbox:
        expect(
            "ownership", output(sandbox, "test -O . && test -O folder/file && echo own"), "own\n"
        )
        output(sandbox, "touch folder/new && test -O folder/new && touch ~/new && rm ~/new")
