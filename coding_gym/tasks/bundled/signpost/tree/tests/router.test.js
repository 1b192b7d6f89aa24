import assert from "node:assert/strict";
import { describe, it, test } from "node:test";

import { Router } from "../src/index.js";

function people() {
  return new Router().add("people", "/people").add("person", "/people/:name");
}

describe("an address", () => {
  it("belongs to the handler of its path", () => {
    assert.equal(people().find("/people").name, "people");
  });

  it("has its parameters decoded", () => {
    assert.deepEqual(people().find("/people/J%C3%B8rn").params, { name: "Jørn" });
  });

  it("may end in a slash, a query and a fragment", () => {
    const found = people().find("/people/ada/?tab=work#top");
    assert.deepEqual(found, { name: "person", params: { name: "ada" }, query: { tab: "work" } });
  });

  it("that fits nothing has no handler", () => {
    assert.equal(people().find("/places"), null);
    assert.equal(people().find("/people/%E0%A4%A"), null);
  });
});

describe("a link", () => {
  it("is what find reads", () => {
    assert.equal(people().link("person", { name: "a/b" }, { tab: "x" }), "/people/a%2Fb?tab=x");
  });

  it("needs its parameters", () => {
    assert.throws(() => people().link("person"), /needs name/);
  });
});

test("a name is given once", () => {
  assert.throws(() => people().add("people", "/others"), /already/);
});

test("a pattern is given once", () => {
  assert.throws(() => people().add("other", "/people/:name"), /matches what/);
});
