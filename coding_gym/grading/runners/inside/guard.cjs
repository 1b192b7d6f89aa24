// Makes what node:assert and node:test export read-only before any code under test is loaded, so
// that it cannot silence the assertions of the tests, nor take the place of the tests themselves.
const seen = new Set();

function guard(value) {
  const isShared = value !== null && (typeof value === "object" || typeof value === "function");
  if (!isShared || seen.has(value)) return;
  seen.add(value);
  for (const name of Reflect.ownKeys(value)) {
    const found = Object.getOwnPropertyDescriptor(value, name);
    if (!("value" in found) || !found.configurable || name === "mock") continue;
    Object.defineProperty(value, name, { ...found, writable: false, configurable: false });
    if (typeof found.value === "function" || name === "prototype") guard(found.value);
  }
  if (typeof value === "function" && value.name === "AssertionError") guard(value.prototype);
}

for (const name of ["node:assert", "node:assert/strict", "node:test"]) guard(require(name));
