import assert from "node:assert/strict";
import { test } from "node:test";

import { formatQuery, parseQuery } from "../src/index.js";

test("pairs are read", () => {
  assert.deepEqual(parseQuery("?a=1&b=two%3D2"), { a: "1", b: "two=2" });
});

test("a value may be missing", () => {
  assert.deepEqual(parseQuery("all&&page="), { all: "", page: "" });
});

test("values are written as texts", () => {
  assert.equal(formatQuery({ page: 2, all: true, none: undefined }), "page=2&all=true");
});

test("blanks and signs are encoded", () => {
  assert.equal(formatQuery({ q: "fish & chips" }), "q=fish%20%26%20chips");
});
