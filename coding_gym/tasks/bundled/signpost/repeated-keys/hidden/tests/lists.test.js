import assert from "node:assert/strict";
import { test } from "node:test";

import { formatQuery, parseQuery, Router } from "../src/index.js";

test("a repeated name gives a list", () => {
  assert.deepEqual(parseQuery("tag=red&tag=blue"), { tag: ["red", "blue"] });
});

test("a list keeps its order and its repetitions", () => {
  const { tag, page } = parseQuery("tag=b&page=2&tag=a&tag=b");
  assert.deepEqual(tag, ["b", "a", "b"]);
  assert.equal(page, "2");
});

test("values without text count", () => {
  assert.deepEqual(parseQuery("tag&tag="), { tag: ["", ""] });
});

test("a name that objects have anyway is a text", () => {
  assert.deepEqual(parseQuery("constructor=1"), { constructor: "1" });
});

test("lists are written as repeated names", () => {
  assert.equal(formatQuery({ tag: ["red", "a b"], page: 1 }), "tag=red&tag=a%20b&page=1");
});

test("empty lists are left out", () => {
  assert.equal(formatQuery({ tag: [], page: 1 }), "page=1");
  assert.equal(formatQuery({ tag: [undefined, "x"] }), "tag=x");
});

test("a link and its address agree", () => {
  const router = new Router().add("all", "/all");
  const query = { tag: ["red", "blue"], page: "2" };
  assert.deepEqual(router.find(router.link("all", {}, query)).query, query);
});

test("single values stay texts", () => {
  assert.deepEqual(parseQuery("tag=red&page=2"), { tag: "red", page: "2" });
});
