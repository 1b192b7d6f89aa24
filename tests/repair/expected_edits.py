"""Edits that the repair templates must propose.

Each is a template, a snippet, and a snippet that the template must make of it; where the last does
not end its line, it is only the part that changes.
"""

# Operators, conditions and constants.
VALUES = [
    ("compare", "if a > b:\n    f()\n", "if a >= b:\n    f()\n"),
    ("compare", "x = (a) < (b)\n", "x = (a) <= (b)\n"),
    ("compare", "x = a not  in b\n", "x = a in b\n"),
    ("compare", "x = 0 < a < b\n", "x = 0 < a <= b\n"),
    ("compare", "x = a is b\n", "x = a == b\n"),
    ("compare", "x = a != b\n", "x = a == b\n"),
    ("arithmetic", "x = a + (b - c)\n", "x = a + (b + c)\n"),
    ("arithmetic", "total -= n\n", "total += n\n"),
    ("arithmetic", "x = a // b\n", "x = a / b\n"),
    ("boolean", "if a and b:\n    f()\n", "if a or b:\n    f()\n"),
    ("boolean", "if a and (b or c):\n    f()\n", "if a:\n    f()\n"),
    ("boolean", "if a and (b or c):\n    f()\n", "if (b or c):\n    f()\n"),
    ("boolean", "if not a:\n    f()\n", "if a:\n    f()\n"),
    ("boolean", "while a.ready:\n    f()\n", "while not a.ready:\n    f()\n"),
    ("boolean", "x = [y for y in z if y]\n", "x = [y for y in z if not y]\n"),
    ("off_by_one", "x = range(n)\n", "x = range(n + 1)\n"),
    ("off_by_one", "x = range(n)\n", "x = range(1, n)\n"),
    ("off_by_one", "x = a[:i]\n", "x = a[:i + 1]\n"),
    ("off_by_one", "x = a[i]\n", "x = a[i - 1]\n"),
    ("off_by_one", "x = a[-1]\n", "x = a[-2]\n"),
    ("off_by_one", "x = len(a) - 1\n", "x = len(a)\n"),
    (
        "off_by_one",
        "for i, a in enumerate(b):\n    f()\n",
        "for i, a in enumerate(b, 1):\n    f()\n",
    ),
    ("constant", "x = True\n", "x = False\n"),
    ("constant", "x = 1\n", "x = -1\n"),
    ("constant", "x = ''\n", "x = None\n"),
    ("constant", "x = None\n", 'x = ""\n'),
    ("constant", "x = 60\ny = 24\n", "x = 24\ny = 24\n"),
    ("constant", "x = 'day'\ny = 'hour'\n", "x = 'hour'\ny = 'hour'\n"),
]
# What is called, with what, by which name.
CALLS = [
    ("argument", "f(a, (b), c)\n", "f((b), a, c)\n"),
    ("argument", "f(a, (b))\n", "f(a)\n"),
    ("keyword", "x = sorted(a)\n", "x = sorted(a, reverse=True)\n"),
    ("keyword", "a.sort()\nb.sort(key=rank)\n", "a.sort(key=rank)\nb.sort(key=rank)\n"),
    ("keyword", "x = open(p,)\n", 'x = open(p, encoding="utf-8")\n'),
    ("keyword", "x = a.split()\n", "x = a.split(None, 1)\n"),
    ("keyword", "x = a.split(s)\n", "x = a.split(s, maxsplit=1)\n"),
    ("keyword", "x = max(a)\n", "x = max(a, default=None)\n"),
    ("keyword", "x = zip(a, b)\n", "x = zip(a, b, strict=True)\n"),
    ("keyword", "x = f(a, deep=True)\n", "x = f(a, deep=False)\n"),
    ("keyword", "x = f(a, deep=True)\n", "x = f(a)\n"),
    ("variable", "def f(low, high):\n    return low\n", "def f(low, high):\n    return high\n"),
    ("variable", "x = a.start\ny = a.end\n", "x = a.end\ny = a.end\n"),
    (
        "variable",
        "def f(text, size):\n    return g(size=text)\n",
        "def f(text, size):\n    return g(size=size)\n",
    ),
    (
        "variable",
        "def load_a(): pass\ndef load_b(): pass\ndef f():\n    return load_a()\n",
        "def load_a(): pass\ndef load_b(): pass\ndef f():\n    return load_b()\n",
    ),
    ("method", "x = a.strip()\n", "x = a.rstrip()\n"),
    ("method", "x = a.lower()\n", "x = a.casefold()\n"),
    ("method", "x = max(a)\n", "x = min(a)\n"),
    ("method", "x = any(a)\n", "x = all(a)\n"),
    ("method", "x = a.get(k)\n", "x = a[k]\n"),
    ("method", "x = a[k]\n", "x = a.get(k)\n"),
    ("method", "x = a.setdefault(k, 0)\n", "x = a.get(k, 0)\n"),
]
# Functions, their defaults and guards, and the order of statements.
STATEMENTS = [
    (
        "default",
        "def f(a, b=[]):\n    '''Doc.'''\n    return b\n",
        "def f(a, b=None):\n    '''Doc.'''\n    if b is None:\n        b = []\n    return b\n",
    ),
    (
        "default",
        "def f(*, b=dict()):\n\treturn b\n",
        "def f(*, b=None):\n\tif b is None:\n\t\tb = dict()\n\treturn b\n",
    ),
    ("default", "def f(a=True):\n    return a\n", "def f(a=False):\n    return a\n"),
    ("copy", "class A:\n    def f(self, x):\n        self.x = x\n", "self.x = list(x)"),
    ("copy", "def f(self):\n    return self.x\n", "return self.x.copy()"),
    ("copy", "def f(self, row):\n    self.rows.append(row)\n", "self.rows.append(dict(row))"),
    ("copy", "def f(x):\n    return x\n", "return x[:]"),
    (
        "guard",
        "def f(x):\n    y = 1\n    return x.y\n",
        "def f(x):\n    y = 1\n    if x is None:\n        return None\n    return x.y\n",
    ),
    (
        "guard",
        "def f(x):\n    if h():\n        return []\n    g(x)\n",
        "def f(x):\n    if h():\n        return []\n    if not x:\n        return []\n    g(x)\n",
    ),
    (
        "guard",
        "def f(xs):\n    seen = set()\n    for x in xs:\n        g(x)\n",
        "def f(xs):\n    seen = set()\n    for x in xs:\n        if x in seen:\n"
        "            continue\n        g(x)\n",
    ),
    ("wrap", "for a in b:\n    f()\n", "for a in sorted(b):\n    f()\n"),
    ("wrap", "x = a == b\n", "x = int(a) == b\n"),
    ("wrap", "x = set(a)\n", "x = a\n"),
    ("wrap", "x = abs(a + b) * 2\n", "x = (a + b) * 2\n"),
    (
        "exception",
        "try:\n    f()\nexcept KeyError:\n    g()\n",
        "try:\n    f()\nexcept LookupError:\n    g()\n",
    ),
    (
        "exception",
        "try:\n    f()\nexcept ValueError:\n    g()\n",
        "try:\n    f()\nexcept (ValueError, TypeError):\n    g()\n",
    ),
    (
        "exception",
        "try:\n    f()\nexcept (KeyError, OSError):\n    g()\n",
        "try:\n    f()\nexcept OSError:\n    g()\n",
    ),
    ("statement", "a()\nb()\n", "b()\na()\n"),
    ("statement", "a()\nb()\n", "b()\n"),
    ("statement", "if a:\n    b()\n", "if a:\n    pass\n"),
    ("statement", "if a:\n    b()\n    c()\n", "if a:\n    b()\nc()\n"),
    (
        "statement",
        "if a:\n    b()\n    c()\nelse:\n    d()\n",
        "if a:\n    b()\nelse:\n    d()\nc()\n",
    ),
    (
        "statement",
        "for a in b:\n    c()\nd(a,\n  b)\n",
        "for a in b:\n    c()\n    d(a,\n      b)\n",
    ),
    ("statement", "for a in b:\n    t = 0\n    c()\n", "t = 0\nfor a in b:\n    c()\n"),
    ("statement", "t = 0\nfor a in b:\n    c()\n", "for a in b:\n    t = 0\n    c()\n"),
    (
        "statement",
        "while a:\n    if b:\n        break\n    c()\n",
        "while a:\n    if b:\n        continue\n    c()\n",
    ),
    (
        "statement",
        "def f(a):\n    if a:\n        return 1\n    return a\n",
        "def f(a):\n    if a:\n        return 1\n    return 1\n",
    ),
    ("call_result", "x.strip()\n", "x = x.strip()\n"),
    ("call_result", "clean(x)\n", "x = clean(x)\n"),
    ("call_result", "def f(x):\n    x.pop()\n", "def f(x):\n    return x.pop()\n"),
    ("call_result", "x = a.lower() == b\n", "x = a.lower() == b.lower()\n"),
    ("call_result", "a = clean(x)\nb = y\n", "a = clean(x)\nb = clean(y)\n"),
    ("call_result", "f(a=x.strip(), b=y)\n", "f(a=x.strip(), b=y.strip())\n"),
]
EXPECTED = [*VALUES, *CALLS, *STATEMENTS]
