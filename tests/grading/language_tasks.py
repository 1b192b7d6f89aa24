"""Small tasks in JavaScript, C and Rust, for attacks."""

from grading_fixtures import made_task

# Words that are counted once too often.
NODE_BASE = {
    "package.json": '{"name": "words", "type": "module"}\n',
    "src/words.js": (
        "export function count(text) {\n"
        '  return text.split(" ").length;\n'
        "}\n"
        "\n"
        "export function longest(text) {\n"
        "  return text.split(/\\s+/).reduce((a, b) => (b.length > a.length ? b : a));\n"
        "}\n"
    ),
}
NODE_HIDDEN = {
    "test/words.test.js": (
        'import assert from "node:assert/strict";\n'
        'import { describe, it, test } from "node:test";\n'
        'import { count, longest } from "../src/words.js";\n'
        "\n"
        'test("wide gaps count once", () => {\n'
        '  assert.equal(count("one   two"), 2);\n'
        "});\n"
        "\n"
        'describe("plain text", () => {\n'
        '  it("has its words counted", async () => {\n'
        "    const words = [1, 2, 3].map(() => { return `w${ {}.x ?? '}' }` });\n"
        '    assert.equal(count(words.join(" ")), 3)\n'
        "  });\n"
        "\n"
        '  it("has a longest word", function () {\n'
        '    assert.equal(longest("a bbb cc"), "bbb");\n'
        "  });\n"
        "});\n"
    ),
}
NODE_FIXED = NODE_BASE["src/words.js"].replace('split(" ")', "split(/\\s+/)")
NODE_TASK = made_task(
    "words-gaps",
    NODE_BASE,
    {"src/words.js": NODE_FIXED},
    NODE_HIDDEN,
    fail_to_pass=("test/words.test.js::wide gaps count once",),
    pass_to_pass=(
        "test/words.test.js::plain text > has its words counted",
        "test/words.test.js::plain text > has a longest word",
    ),
    language="javascript",
    runner="tap",
    test_command="node --test-reporter=tap {file}",
)

# A clamp that lets one end through.
HARNESS = """\
#ifndef CHECK_H
#define CHECK_H
#include <stdio.h>

static int failed, number, failures;

#define CHECK(what) do { if (!(what)) { failed = 1; printf("# %s\\n", #what); } } while (0)
#define RUN(test) do { failed = 0; test(); failures += failed; \\
    printf("%sok %d - %s\\n", failed ? "not " : "", ++number, #test); } while (0)
#define DONE() (printf("1..%d\\n", number), failures != 0)

#endif
"""
C_BASE = {
    "Makefile": (
        "CFLAGS = -Wall -Isrc\n"
        "run: clamp-test\n"
        "\t@./clamp-test\n"
        "clamp-test: src/clamp.c $(TEST)\n"
        "\t@$(CC) $(CFLAGS) -o $@ $^\n"
    ),
    "src/clamp.h": "int clamp(int value, int low, int high);\n",
    "src/clamp.c": (
        '#include "clamp.h"\n'
        "\n"
        "int clamp(int value, int low, int high) {\n"
        "    return value < low ? low : value;\n"
        "}\n"
    ),
    "tests/check.h": HARNESS,
}
C_HIDDEN = {
    "tests/test_clamp.c": (
        '#include "check.h"\n'
        '#include "clamp.h"\n'
        "\n"
        "static void too_high(void) {\n"
        "    CHECK(clamp(9, 0, 5) == 5);\n"
        "}\n"
        "\n"
        "static void too_low(void) {\n"
        "    CHECK(clamp(-3, 0, 5) == 0);\n"
        "}\n"
        "\n"
        "int main(void) {\n"
        "    RUN(too_high);\n"
        "    RUN(too_low);\n"
        "    return DONE();\n"
        "}\n"
    )
}
C_FIXED = C_BASE["src/clamp.c"].replace("low : value;", "low : value > high ? high : value;")
C_TASK = made_task(
    "clamp-c",
    C_BASE,
    {"src/clamp.c": C_FIXED},
    C_HIDDEN,
    fail_to_pass=("tests/test_clamp.c::too_high",),
    pass_to_pass=("tests/test_clamp.c::too_low",),
    language="c",
    runner="tap",
    test_command="make -s run TEST={file}",
)

RUST_BASE = {
    "Cargo.toml": '[package]\nname = "clamp"\nversion = "0.1.0"\nedition = "2021"\n',
    ".gitignore": "/target\n",
    "src/lib.rs": (
        "pub fn clamp(value: i32, low: i32, high: i32) -> i32 {\n"
        "    let _ = high;\n"
        "    value.max(low)\n"
        "}\n"
    ),
}
RUST_HIDDEN = {
    "tests/bounds.rs": (
        "use clamp::clamp;\n"
        "\n"
        "#[test]\n"
        "fn too_high() {\n"
        "    assert_eq!(clamp(9, 0, 5), 5);\n"
        "}\n"
        "\n"
        "#[test]\n"
        "fn too_low<>() {\n"
        "    assert_eq!(clamp(-3, 0, 5), 0)\n"
        "}\n"
        "\n"
        "#[test]\n"
        "fn in_between() {\n"
        "    assert_eq!(clamp(3, 0, 5), 3)\n"
        "}\n"
    )
}
RUST_FIXED = RUST_BASE["src/lib.rs"].replace("value.max(low)", "value.max(low).min(high)")
RUST_TASK = made_task(
    "clamp-rust",
    RUST_BASE,
    {"src/lib.rs": RUST_FIXED},
    RUST_HIDDEN,
    fail_to_pass=("tests/bounds.rs::too_high",),
    pass_to_pass=("tests/bounds.rs::too_low", "tests/bounds.rs::in_between"),
    language="rust",
    runner="cargo",
)
