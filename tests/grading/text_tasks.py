"""Tasks in C and Rust small enough to attack: a clamp that lets one end through."""

from made_tasks import made_task

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
