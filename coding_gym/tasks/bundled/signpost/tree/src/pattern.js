const WORD = 0;
const PARAMETER = 1;
const REST = 2;

/** A pattern such as `/people/:name/*path`, ready to be matched and to be filled in. */
export class Pattern {
  constructor(source) {
    this.source = source;
    this.segments = split(source).map(segment);
    const names = this.segments.filter(({ kind }) => kind !== WORD).map(({ text }) => text);
    if (new Set(names).size < names.length) {
      throw new TypeError(`${source} names a parameter twice`);
    }
    const rest = this.segments.findIndex(({ kind }) => kind === REST);
    if (rest >= 0 && rest < this.segments.length - 1) {
      throw new TypeError(`${source} goes on after its rest`);
    }
  }

  /** What tells this pattern from others, whatever its parameters are called. */
  get shape() {
    const shown = this.segments.map(({ kind, text }) => (kind === WORD ? text : ":*"[kind - 1]));
    return `/${shown.join("/")}`;
  }

  /** Returns the parameters of a path, or null where it does not match. */
  match(path) {
    const parts = split(path);
    const params = {};
    for (const [index, { kind, text }] of this.segments.entries()) {
      if (kind === REST) {
        params[text] = parts.slice(index).map(decodeURIComponent).join("/");
        return params;
      }
      if (index >= parts.length || parts[index] === "") {
        return null;
      }
      const part = decodeURIComponent(parts[index]);
      if (kind === PARAMETER) {
        params[text] = part;
      } else if (part !== text) {
        return null;
      }
    }
    return parts.length === this.segments.length ? params : null;
  }

  /** Returns the path with these parameters. */
  fill(params) {
    const parts = this.segments.map(({ kind, text }) => {
      if (kind === WORD) {
        return encodeURIComponent(text);
      }
      const value = params[text];
      if (kind === REST) {
        return String(value ?? "").split("/").map(encodeURIComponent).join("/");
      }
      if (value === undefined || value === null || value === "") {
        throw new TypeError(`${this.source} needs ${text}`);
      }
      return encodeURIComponent(value);
    });
    return `/${parts.join("/")}`;
  }
}

/** Negative where pattern `one` is to be tried before pattern `two`. */
export function bySpecificity(one, two) {
  const length = Math.max(one.segments.length, two.segments.length);
  for (let index = 0; index < length; index += 1) {
    const kinds = [one, two].map(({ segments }) => segments[index]?.kind ?? WORD);
    if (kinds[0] !== kinds[1]) {
      return kinds[0] - kinds[1];
    }
  }
  return 0;
}

export function compile(source) {
  return new Pattern(source);
}

function split(path) {
  const trimmed = path.replace(/^\//, "").replace(/\/$/, "");
  return trimmed === "" ? [] : trimmed.split("/");
}

function segment(part) {
  if (part.startsWith(":")) {
    return { kind: PARAMETER, text: named(part) };
  }
  if (part.startsWith("*")) {
    return { kind: REST, text: named(part) };
  }
  return { kind: WORD, text: part };
}

function named(part) {
  if (part.length === 1) {
    throw new TypeError(`${part} needs a name`);
  }
  return part.slice(1);
}
