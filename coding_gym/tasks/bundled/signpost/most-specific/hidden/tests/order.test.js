import assert from "node:assert/strict";
import { test } from "node:test";

import { Router } from "../src/index.js";

const PATTERNS = {
  everything: "/*path",
  people: "/people",
  person: "/people/:name",
  fresh: "/people/new",
  tab: "/people/:name/settings",
  freshTab: "/people/new/:tab",
  files: "/people/*path",
  home: "/",
};
const EXPECTED = {
  "/": "home",
  "/people": "people",
  "/people/": "people",
  "/people/new": "fresh",
  "/people/ada": "person",
  "/people/ada/settings": "tab",
  "/people/new/settings": "freshTab",
  "/people/ada/photos": "files",
  "/people/a/b/c": "files",
  "/places/oslo": "everything",
};

function router(names) {
  return names.reduce((made, name) => made.add(name, PATTERNS[name]), new Router());
}

function found(made) {
  return Object.fromEntries(Object.keys(EXPECTED).map((path) => [path, made.find(path)?.name]));
}

test("each address has one handler", () => {
  assert.deepEqual(found(router(Object.keys(PATTERNS))), EXPECTED);
});

test("any other order gives the same", () => {
  const names = Object.keys(PATTERNS);
  for (let turn = 0; turn < names.length; turn += 1) {
    names.push(names.shift());
    assert.deepEqual(found(router(names)), EXPECTED, names.join());
    assert.deepEqual(found(router([...names].reverse())), EXPECTED, names.join());
  }
});

test("left counts more than right", () => {
  const made = new Router().add("right", "/:kind/list").add("left", "/books/:view");
  assert.equal(made.find("/books/list").name, "left");
  assert.equal(made.find("/films/list").name, "right");
});

test("the next one is tried where the first does not fit", () => {
  const made = new Router().add("rest", "/a/*path").add("deep", "/a/:b/c");
  assert.deepEqual(made.find("/a/x/d").params, { path: "x/d" });
  assert.deepEqual(made.find("/a/x/c").params, { b: "x" });
});

test("names of parameters make no difference", () => {
  const made = new Router().add("one", "/a/:b");
  assert.throws(() => made.add("two", "/a/:c"), /matches what/);
  assert.throws(() => made.add("three", "/:b/*c").add("four", "/:x/*y"), /matches what/);
  assert.equal(made.add("word", "/a/b").find("/a/b").name, "word");
});

test("a word is no parameter of that name", () => {
  const made = new Router().add("word", "/a/b").add("parameter", "/a/:b");
  assert.equal(made.find("/a/b").name, "word");
});
