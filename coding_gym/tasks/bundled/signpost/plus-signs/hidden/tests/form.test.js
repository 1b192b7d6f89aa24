import assert from "node:assert/strict";
import { test } from "node:test";

import { parseQuery, Router } from "../src/index.js";

test("a form writes blanks as pluses", () => {
  assert.deepEqual(parseQuery("q=fish+and+chips"), { q: "fish and chips" });
});

test("names have blanks as well", () => {
  assert.deepEqual(parseQuery("full+name=Ada"), { "full name": "Ada" });
});

test("an encoded plus stays one", () => {
  assert.deepEqual(parseQuery("sum=1%2B1&other=1+%2B"), { sum: "1+1", other: "1 +" });
});

test("the path keeps its pluses", () => {
  const router = new Router().add("tag", "/tags/:tag");
  const found = router.find("/tags/c++?sort=by+name");
  assert.deepEqual(found.params, { tag: "c++" });
  assert.deepEqual(found.query, { sort: "by name" });
});

test("a percent code is a blank too", () => {
  assert.deepEqual(parseQuery("q=a%20b"), { q: "a b" });
});
