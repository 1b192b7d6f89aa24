/** Creates the elements of pages; texts never become markup. */

const SVG_NAMESPACE = "http://www.w3.org/2000/svg";
const MAX_TEXT = 30_000; // characters of one text; `textBlock` displays longer texts in pieces

/**
 * Characters that could hide or reorder text: controls except tab and line feed, bidirectional
 * marks, invisible letters, tags and lone surrogates.
 */
export const HIDDEN =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: it matches control characters
  /[\0-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u115f\u1160\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff9-\ufffb\ud800-\udfff\u{e0000}-\u{e007f}]/gu;

/** The code point of a hidden character, such as ‹U+202E›. */
export function hiddenMark(character) {
  return `‹U+${character.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}›`;
}

/** A text in which marks replace the hidden characters. */
export function visible(text) {
  return String(text).replace(HIDDEN, hiddenMark);
}

/**
 * An HTML element, as in el("a.quiet", { href }, "text"): a tag with its classes, attributes, and
 * children; strings are added as text. Attributes that are null or false are omitted, true is set
 * as "", and a function is added as a listener of the event whose name follows "on".
 */
export function el(tag, ...parts) {
  return fill(document.createElement(tag.split(".")[0]), tag, parts);
}

/** An SVG element; the arguments are those of `el`. */
export function svgEl(tag, ...parts) {
  return fill(document.createElementNS(SVG_NAMESPACE, tag.split(".")[0]), tag, parts);
}

function fill(node, tag, parts) {
  const classes = tag.split(".").slice(1).join(" ");
  if (classes) node.setAttribute("class", classes);
  const attributes = parts[0]?.constructor === Object ? parts.shift() : {};
  for (const [name, value] of Object.entries(attributes)) {
    if (isMissing(value)) continue;
    if (typeof value === "function") node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value === true ? "" : name === "title" ? visible(value) : value);
  }
  node.append(...contents(parts));
  return node;
}

function isMissing(value) {
  return value === null || value === undefined || value === false;
}

/** The nodes in nested lists of nodes, texts and null. */
export function contents(children) {
  const items = [children].flat(Infinity).filter((child) => !isMissing(child));
  const short = (text) => (text.length > MAX_TEXT ? `${text.slice(0, MAX_TEXT)} …` : text);
  return items.map((child) => (child instanceof Node ? child : visible(short(String(child)))));
}

/** Replaces the content of an element; the element of the focused `data-key` keeps the focus. */
export function redraw(container, ...children) {
  const focused = document.activeElement;
  const key = container.contains(focused) ? focused.dataset.key : undefined;
  container.replaceChildren(...contents(children));
  if (key) withKey(container, key)?.focus({ preventScroll: true });
}

/** The element with a `data-key`; null if missing. */
export function withKey(container, key) {
  return container.querySelector(`[data-key="${CSS.escape(key)}"]`);
}

/** A button that calls `onclick`. */
export function button(label, onclick, attributes = {}) {
  return el("button", { type: "button", onclick, ...attributes }, label);
}

/** A labelled select field; options are [value, label]. */
export function select(label, options, value, onchange) {
  const option = ([key, text]) => el("option", { value: key, selected: key === value }, text);
  const change = (event) => onchange(event.target.value);
  const box = el("select", { "data-key": label, onchange: change }, options.map(option));
  return el("label.field", el("small", label), box);
}

/** A framed message: kind is "info", "warning" or "error". */
export function notice(kind, ...children) {
  return el(`div.notice.${kind}`, { role: kind === "error" ? "alert" : null }, children);
}

/** The message of an error, with a button to try again. */
export function failure(error, again) {
  return notice("error", error.message, " ", button("Try again", again));
}

/** A list of [name, value]; names without a value are omitted. The kind is "facts" or "tiles". */
export function facts(pairs, kind = "facts") {
  const entries = pairs.filter(([, value]) => !isMissing(value) && value !== "");
  const items = entries.map(([name, value]) => el("div.row", el("dt", name), el("dd", value)));
  return el(`dl.row.${kind}`, items);
}

/** A collapsed element; the first expansion calls `make`, which returns (a promise of) content. */
export function folded(summary, make, open = false) {
  const body = el("div");
  const details = el("details", { open }, el("summary", summary), body);
  const show = async () => {
    redraw(body, el("small", "Loading …"));
    try {
      redraw(body, await make());
    } catch (error) {
      redraw(body, failure(error, show));
    }
  };
  details.addEventListener("toggle", show, { once: true });
  return details;
}

/**
 * A table. Columns are [label, cell(row), shape, sort]; shape holds any of "number", "heading"
 * (names the row) and "wide" (hidden on phones). With `sorting` ({sort, order, set}), the headers
 * of columns with a `sort` name are buttons. A button displays the rows after the first `shown`.
 */
export function table(caption, columns, rows, sorting = null, shown = 500) {
  const headers = columns.map(([label, , shape = "", sort = ""]) => {
    const act = () => sorting.set(sort);
    const isSorted = sort && sorting?.sort === sort;
    const direction = sorting?.order === "desc" ? "descending" : "ascending";
    const content = sorting && sort ? button(label, act, { "data-key": `sort ${sort}` }) : label;
    return el("th", { class: shape, "aria-sort": isSorted ? direction : null }, content);
  });
  const line = (row) =>
    columns.map(([, cell, shape = ""]) => {
      const isHeading = shape.includes("heading");
      return el(
        isHeading ? "th" : "td",
        { class: shape, scope: isHeading ? "row" : null },
        cell(row),
      );
    });
  const body = el("tbody");
  const more = button("Show more rows", () => add(500), { "data-more": true });
  const add = (count) => {
    const next = rows.slice(body.rows.length, body.rows.length + count);
    body.append(...next.map((row) => el("tr", line(row))));
    if (body.rows.length === rows.length) more.remove();
  };
  add(shown);
  const head = el("thead", el("tr", headers));
  const grid = el("table", el("caption.hidden", caption), head, body);
  const frame = el("div.table", { role: "region", "aria-label": caption, tabindex: 0 }, grid);
  return [frame, body.rows.length < rows.length ? more : null];
}
