"""An evaluation script of SWE-bench runs whole, but for what writes the hidden tests."""

import pytest
from rows import loaded, refusal, row

TESTS = "go test -v ./...\ncd sub && make check"
SCRIPT = f"""\
#!/bin/bash
set -uxo pipefail
source /opt/miniconda3/bin/activate
cd /testbed
git config --global --add safe.directory /testbed
export LANG=en_US.UTF-8
for a in b c; do
  make $a
done
git checkout 1111111 tests/test_core.py
git apply -v - <<'EOF_114'
diff --git a/x b/x
+: '>>>>> Start Test Output'
make this no command
EOF_114
cat > setup.cfg <<END
git status
END
: '>>>>> Start Test Output'
{TESTS}
: '>>>>> End Test Output'
git checkout 1111111 tests/test_core.py
"""
GO = {"FAIL_TO_PASS": ["a"], "log_parser": "gotest"}


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_script_runs_whole_but_for_writing_hidden_tests(newline: str) -> None:
    task = loaded(row(eval_script=SCRIPT.replace("\n", newline), **GO))
    before, _, rest = SCRIPT.partition("git checkout 1111111")
    kept = rest[rest.index("cat > setup.cfg") : rest.rindex("\ngit checkout")]
    assert (task.runner, task.test_command) == ("swebench", before + kept)


def test_pytest_runner_takes_the_lines_between_the_markers() -> None:
    task = loaded(row(eval_script=SCRIPT))
    assert (task.runner, task.test_command) == ("pytest", TESTS)


def test_installation_in_the_script_is_no_install_command() -> None:
    assert loaded(row(eval_script=SCRIPT)).install_commands == ()


@pytest.mark.parametrize("script", ["make\n", ": '>>>>> Start Test Output'\n \n"])
def test_script_without_marked_tests_is_refused(script: str) -> None:
    assert "field 'eval_script'" in refusal([row(eval_script=script)])
