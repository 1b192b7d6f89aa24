/** Returns the values of a query by name: a text, or a list of texts for a repeated name. */
export function parseQuery(query) {
  const values = {};
  for (const pair of query.replace(/^\?/, "").split("&")) {
    if (pair === "") {
      continue;
    }
    const [name, value] = cut(pair, "=").map(decode);
    if (Object.hasOwn(values, name)) {
      values[name] = [values[name], value].flat();
    } else {
      values[name] = value;
    }
  }
  return values;
}

/** Returns a query that `parseQuery` reads back, without a question mark. */
export function formatQuery(values) {
  const pairs = [];
  for (const [name, value] of Object.entries(values)) {
    for (const one of Array.isArray(value) ? value : [value]) {
      if (one !== undefined) {
        pairs.push(`${encodeURIComponent(name)}=${encodeURIComponent(one)}`);
      }
    }
  }
  return pairs.join("&");
}

function decode(text) {
  return decodeURIComponent(text.replaceAll("+", " "));
}

function cut(text, mark) {
  const at = text.indexOf(mark);
  return at < 0 ? [text, ""] : [text.slice(0, at), text.slice(at + 1)];
}
