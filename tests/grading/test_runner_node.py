"""JavaScript with node:test: what is graded, and what cheats come to."""

import random
from dataclasses import replace

import pytest
from grading_fixtures import graded, graded_gold
from node_task import BASE, FIXED, HIDDEN, TASK

from coding_gym.grade import GradeReason
from coding_gym.grading.runners import get_runner
from coding_gym.sandbox.toolchains import find_toolchain
from coding_gym.workspace import TemplateStore

pytestmark = pytest.mark.skipif(
    bool(find_toolchain("javascript").missing), reason=find_toolchain("javascript").missing
)
SOURCE = "src/words.js"
BROKEN = BASE[SOURCE]


def test_the_gold_patch_resolves_and_the_base_does_not(store: TemplateStore) -> None:
    gold = graded_gold(TASK, store)
    assert (gold.reason, gold.num_canaries) == (GradeReason.RESOLVED, 2), gold.detail
    base = graded(TASK, store, {"README.md": "Nothing.\n"})
    assert base.reason is GradeReason.TESTS_FAILED
    assert dict(base.fail_to_pass) == {"test/words.test.js::wide gaps count once": "failed"}
    assert set(base.pass_to_pass.values()) == {"passed"}


@pytest.mark.parametrize(
    "cheat",
    [
        "process.exit(0);\n",
        'process.on("exit", () => process.exit(0));\nprocess.kill(process.pid, "SIGKILL");\n',
        'process.kill(process.ppid, "SIGKILL");\n',
        'console.log("ok 1 - wide gaps count once\\n1..1");\nprocess.exit(0);\n',
        # The way in which node's processes tell one another.
        'import v8 from "node:v8";\nimport fs from "node:fs";\n'
        'const data = { name: "wide gaps count once", nesting: 0, testNumber: 1, details: {} };\n'
        'const body = v8.serialize({ type: "test:pass", data });\n'
        "const size = Buffer.alloc(4);\nsize.writeUInt32BE(body.length - 2);\n"
        "fs.writeSync(1, Buffer.concat([body.subarray(0, 2), size, body.subarray(2)]));\n"
        "process.exit(0);\n",
        'import assert from "node:assert/strict";\nassert.equal = () => {};\n',
        'import assert from "node:assert/strict";\n'
        "for (const name of Object.keys(assert)) {\n"
        '  if (typeof assert[name] === "function") assert[name] = () => {};\n'
        "}\n",
        'import assert from "node:assert";\nassert.AssertionError.prototype.name = "";\n'
        "Error.stackTraceLimit = 0;\nassert.strict.equal = assert.strictEqual = () => true;\n",
        'import { createRequire, syncBuiltinESMExports } from "node:module";\n'
        'const nodeTest = createRequire(import.meta.url)("node:test");\n'
        "nodeTest.test = nodeTest.it = (name) => {};\nsyncBuiltinESMExports();\n",
    ],
    ids=["exit", "kill", "parent", "print", "frame", "equal", "assert", "strict", "test"],
)
def test_cheats_in_the_code_under_test_do_not_resolve(store: TemplateStore, cheat: str) -> None:
    grade = graded(TASK, store, {SOURCE: cheat + BROKEN})
    assert not grade.resolved
    assert grade.reason in {GradeReason.TESTS_FAILED, GradeReason.TAMPERED}, grade.detail


def test_tests_of_a_patch_are_left_out(store: TemplateStore) -> None:
    paths = ("src/words.test.mjs", "test/helper.js", "test/words.test.js")
    files = dict.fromkeys(paths, "process.exit(0);\n")
    grade = graded(TASK, store, {SOURCE: FIXED, **files})
    assert grade.resolved, grade.detail
    assert grade.dropped_paths == paths


def test_a_file_that_cannot_be_loaded_says_so(store: TemplateStore) -> None:
    grade = graded(TASK, store, {SOURCE: "export function count( {"})
    assert grade.reason is GradeReason.TESTS_FAILED
    assert set(grade.fail_to_pass.values()) == {"missing"}


def test_canaries_read_like_their_neighbours() -> None:
    files = {path: text.encode() for path, text in HIDDEN.items()}
    canaries, changed = get_runner("node").plant(files, TASK, random.Random(7), avoid=frozenset())
    text = changed["test/words.test.js"].decode()
    assert len(canaries) == 2
    for canary in canaries:
        assert canary.node_id not in TASK.expected_tests
        assert f'"{canary.name.rpartition(" > ")[2]}"' in text
        assert canary.original_id in TASK.expected_tests


def test_an_id_without_a_file_is_refused() -> None:
    wrong = replace(TASK, fail_to_pass=("wide gaps",))
    assert get_runner("node").problem(wrong) == "expected test 'wide gaps' is not FILE::NAME"
