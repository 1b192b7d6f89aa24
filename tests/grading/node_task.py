"""A JavaScript task small enough to attack: words that are counted once too often."""

from made_tasks import made_task

BASE = {
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
HIDDEN = {
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
FIXED = BASE["src/words.js"].replace('split(" ")', "split(/\\s+/)")
TASK = made_task(
    "words-gaps",
    BASE,
    {"src/words.js": FIXED},
    HIDDEN,
    fail_to_pass=("test/words.test.js::wide gaps count once",),
    pass_to_pass=(
        "test/words.test.js::plain text > has its words counted",
        "test/words.test.js::plain text > has a longest word",
    ),
    language="javascript",
    runner="node",
)
