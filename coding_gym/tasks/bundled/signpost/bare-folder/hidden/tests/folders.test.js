import assert from "node:assert/strict";
import { describe, it } from "node:test";

import { Router } from "../src/index.js";

const router = new Router().add("files", "/files/*path").add("raw", "/raw/:branch/*path");

describe("the rest of an address", () => {
  it("may be missing", () => {
    assert.deepEqual(router.find("/files").params, { path: "" });
    assert.deepEqual(router.find("/files/").params, { path: "" });
  });

  it("may be missing behind a parameter", () => {
    assert.deepEqual(router.find("/raw/main").params, { branch: "main", path: "" });
  });

  it("does not stand for a parameter", () => {
    assert.equal(router.find("/raw"), null);
  });

  it("has its segments decoded", () => {
    assert.deepEqual(router.find("/files/a%20b/c").params, { path: "a b/c" });
  });
});

describe("a link with a rest", () => {
  it("keeps the slashes", () => {
    assert.equal(router.link("files", { path: "docs/a b/?.md" }), "/files/docs/a%20b/%3F.md");
  });

  it("may leave it out", () => {
    for (const params of [{}, { path: "" }, { path: null }]) {
      const link = router.link("files", params);
      assert.deepEqual(router.find(link).params, { path: "" }, link);
    }
  });

  it("still needs other parameters", () => {
    assert.throws(() => router.link("raw", { path: "a" }), /needs branch/);
  });

  it("is read back", () => {
    const params = { branch: "main", path: "x/y z" };
    assert.deepEqual(router.find(router.link("raw", params)).params, params);
  });
});
