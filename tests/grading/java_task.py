"""A Java task small enough to attack: a ring buffer that forgets the wrong end."""

from made_tasks import made_task

BASE = {
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
HIDDEN = {
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
FIXED = BASE["src/ring/Ring.java"].replace(
    "Math.min(count++, cells.length - 1)", "count++ % cells.length"
)
TASK = made_task(
    "ring-newest",
    BASE,
    {"src/ring/Ring.java": FIXED},
    HIDDEN,
    fail_to_pass=("ring.RingTest::keepsTheNewest",),
    pass_to_pass=("ring.RingTest::keepsOne", "ring.RingTest::refusesNoSize"),
    language="java",
    runner="java",
)
