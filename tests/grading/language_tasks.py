"""Tasks in other languages, small enough to attack: in Java, JavaScript, C and Rust."""

from grading_fixtures import made_task

# A ring buffer that forgets the wrong end.
JAVA_BASE = {
    "src/ring/Ring.java": (
        "package ring;\n"
        "\n"
        "public class Ring {\n"
        "    private final int[] cells;\n"
        "    private int count;\n"
        "\n"
        "    public Ring(int size) {\n"
        "        cells = new int[size];\n"
        "    }\n"
        "\n"
        "    public void put(int value) {\n"
        "        cells[Math.min(count++, cells.length - 1)] = value;\n"
        "    }\n"
        "\n"
        "    public int newest() {\n"
        "        return cells[(count - 1) % cells.length];\n"
        "    }\n"
        "}\n"
    ),
    "README.md": "# A ring\n",
}
JAVA_HIDDEN = {
    "tests/ring/RingTest.java": (
        "package ring;\n"
        "\n"
        "import static org.junit.Assert.assertEquals;\n"
        "\n"
        "import org.junit.Test;\n"
        "\n"
        "public class RingTest {\n"
        "    @Test\n"
        "    public void keepsTheNewest() {\n"
        "        Ring ring = new Ring(2);\n"
        "        ring.put(1);\n"
        "        ring.put(2);\n"
        "        ring.put(3);\n"
        "        assertEquals(3, ring.newest());\n"
        "    }\n"
        "\n"
        "    @Test\n"
        "    public void keepsOne() {\n"
        "        Ring ring = new Ring(2);\n"
        "        ring.put(7);\n"
        "        assertEquals(7, ring.newest());\n"
        "    }\n"
        "\n"
        "    @Test(expected = ArithmeticException.class)\n"
        "    public void refusesNoSize() {\n"
        "        new Ring(0).newest();\n"
        "    }\n"
        "}\n"
    ),
}
JAVA_FIXED = JAVA_BASE["src/ring/Ring.java"].replace(
    "Math.min(count++, cells.length - 1)", "count++ % cells.length"
)
JAVA_TASK = made_task(
    "ring-newest",
    JAVA_BASE,
    {"src/ring/Ring.java": JAVA_FIXED},
    JAVA_HIDDEN,
    fail_to_pass=("ring.RingTest::keepsTheNewest",),
    pass_to_pass=("ring.RingTest::keepsOne", "ring.RingTest::refusesNoSize"),
    language="java",
    runner="java",
)

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
    runner="node",
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
