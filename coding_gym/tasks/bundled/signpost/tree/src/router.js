import { bySpecificity, compile } from "./pattern.js";
import { formatQuery, parseQuery } from "./query.js";

/** Handlers by name, each with the pattern of its addresses. */
export class Router {
  #routes = [];

  add(name, source) {
    const pattern = compile(source);
    if (this.#routes.some((route) => route.name === name)) {
      throw new TypeError(`there is a route ${name} already`);
    }
    const same = this.#routes.find((route) => route.pattern.shape === pattern.shape);
    if (same !== undefined) {
      throw new TypeError(`${source} matches what ${same.pattern.source} matches`);
    }
    this.#routes.push({ name, pattern });
    this.#routes.sort((one, two) => bySpecificity(one.pattern, two.pattern));
    return this;
  }

  /** Returns name, params and query of an address, or null. */
  find(address) {
    const [path, query] = halves(address);
    for (const { name, pattern } of this.#routes) {
      const params = matched(pattern, path);
      if (params !== null) {
        return { name, params, query: parseQuery(query) };
      }
    }
    return null;
  }

  /** Returns an address that `find` reads back. */
  link(name, params = {}, query = {}) {
    const route = this.#routes.find((one) => one.name === name);
    if (route === undefined) {
      throw new TypeError(`there is no route ${name}`);
    }
    const text = formatQuery(query);
    return route.pattern.fill(params) + (text === "" ? "" : `?${text}`);
  }
}

function halves(address) {
  const [whole] = address.split("#", 1);
  const at = whole.indexOf("?");
  return at < 0 ? [whole, ""] : [whole.slice(0, at), whole.slice(at + 1)];
}

/** An address that cannot be decoded matches nothing. */
function matched(pattern, path) {
  try {
    return pattern.match(path);
  } catch (error) {
    if (error instanceof URIError) {
      return null;
    }
    throw error;
  }
}
