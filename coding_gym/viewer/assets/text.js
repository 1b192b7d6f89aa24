/** Blocks of untrusted text: colours of terminals, differences, and texts of any length. */

import { button, el, failure, redraw, visible } from "./dom.js";
import { number } from "./format.js";

const CHUNK = [20_000, 1_000]; // characters and lines that are put into the page at once
const PREVIEW = [3_000, 30]; // the same, of a text in a turn
const MAX_SPANS = 2_000; // per chunk; text behind so many changes of colour stays plain
const MAX_COMPARED = 1_000; // characters of a line whose changed part is searched for

/**
 * A block for {text, total}, where `more(offset)` loads what `text` lacks of the total; without it
 * the block says that the text is cut. The kind is any of the classes prose, output, command and
 * whole (which shows more of it at first).
 */
export function textBlock(text, more = null, kind = "") {
  const isDiff = /^(?:diff --git |--- \S.*\n\+\+\+ |\*\*\* Begin Patch)/m.test(
    text.text.slice(0, 2_000),
  );
  const pre = el("pre", { class: `untrusted ${kind} ${isDiff ? "diff" : ""}`, dir: "ltr" });
  const write = isDiff ? diffWriter(pre) : terminalWriter(pre);
  const foot = el("div");
  let [known, shown, loaded, total] = [text.text, 0, codePoints(text.text), text.total];
  const show = (limits) => {
    const end = chunkEnd(known, shown, ...limits);
    write(known.slice(shown, end), end === known.length && loaded >= total);
    shown = end;
    const rest = total - loaded + known.length - shown;
    const label = `Show more of ${number(rest)} characters`;
    const cut = `${number(rest)} more characters are not in this report.`;
    const next = shown < known.length || more ? button(label, advance) : el("p.note", cut);
    redraw(foot, rest > 0 ? next : null);
  };
  const advance = async () => {
    try {
      if (shown === known.length) {
        redraw(foot, el("p.note", "Loading …"));
        const next = await more(loaded);
        [known, shown] = [next.text, 0];
        loaded += codePoints(next.text);
        total = next.text ? next.total : loaded;
      }
      show(CHUNK);
    } catch (error) {
      redraw(foot, failure(error, advance));
    }
  };
  show(kind.includes("whole") ? CHUNK : PREVIEW);
  return el("div.block", pre, foot);
}

/** Characters as the server counts them: a pair of surrogates is one. */
function codePoints(text) {
  return text.length - (text.match(/[\ud800-\udbff][\udc00-\udfff]/g)?.length ?? 0);
}

/** Where a chunk ends: behind so many characters or lines, after a line feed if one is near. */
function chunkEnd(text, start, maxChars, maxLines) {
  const limit = Math.min(start + maxChars, text.length);
  let end = start;
  for (let lines = 0; lines < maxLines; lines += 1) {
    const feed = text.indexOf("\n", end);
    if (feed < 0 || feed >= limit) {
      const isNear = limit < text.length && end > start + maxChars / 2;
      return isNear ? end : limit + (/^[\udc00-\udfff]/.test(text.slice(limit, limit + 1)) ? 1 : 0);
    }
    end = feed + 1;
  }
  return end;
}

/** Escape sequences: colours (group 1 has their codes), other controls, strings up to their end. */
const ESCAPES =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what it looks for
  /(?:\x1b\[|\x9b)([\d;:]*)m|(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]|(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x9c\n]*(?:\x07|\x1b\\|\x9c)?|\x1b[ -/]*[0-~]/g;

/** An escape sequence in which a chunk ends, and which the next one may complete. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: these are what it looks for
const OPEN_ESCAPE = /\x1b(?:\[[0-?]*[ -/]*|[\]PX^_][^\x07\x1b\n]{0,1000})?$/;

/** A function that appends chunks of a terminal's output to an element. */
function terminalWriter(parent) {
  let [style, open] = [{}, ""];
  return (chunk, isLast) => {
    const text = open + chunk.replaceAll("\r\n", "\n").replaceAll("\r", "␍\n");
    open = isLast ? "" : (text.match(OPEN_ESCAPE)?.[0] ?? "");
    const pieces = [];
    let start = 0;
    const flush = (end) => {
      const piece = visible(text.slice(start, end));
      const name = pieces.length < MAX_SPANS ? Object.values(style).filter(Boolean).join(".") : "";
      if (piece) pieces.push(name ? el(`span.${name}`, piece) : piece);
    };
    for (const match of text.matchAll(ESCAPES)) {
      flush(match.index);
      start = match.index + match[0].length;
      if (match[1] !== undefined) style = nextStyle(style, match[1]);
    }
    flush(text.length - open.length);
    parent.append(...pieces);
  };
}

/** What the codes of colour sequences do to a style, which is its classes by their kind. */
const STYLE_CODES = {
  1: { bold: "a-bold" },
  2: { dim: "a-dim" },
  3: { italic: "a-italic" },
  4: { underline: "a-underline" },
  7: { inverse: "a-inverse" },
  9: { strike: "a-strike" },
  22: { bold: "", dim: "" },
  23: { italic: "" },
  24: { underline: "" },
  27: { inverse: "" },
  29: { strike: "" },
  39: { fg: "" },
  49: { bg: "" },
};

/** The style behind the codes of one SGR sequence (ECMA-48, 8.3.117). */
function nextStyle(before, codes) {
  const numbers = codes.split(/[;:]/).slice(0, 32).map(Number);
  let style = before;
  for (let i = 0; i < numbers.length; i += 1) {
    const [code, tens] = [numbers[i], Math.floor(numbers[i] / 10)];
    if (code === 38 || code === 48) {
      const isRgb = numbers[i + 1] === 2;
      const colour = isRgb ? nearest(numbers.slice(i + 2, i + 5)) : ofPalette(numbers[i + 2]);
      style = { ...style, ...(code === 38 ? { fg: `a-fg${colour}` } : { bg: `a-bg${colour}` }) };
      i += isRgb ? 4 : 2;
    } else if (code === 0) style = {};
    else if (STYLE_CODES[code]) style = { ...style, ...STYLE_CODES[code] };
    else if (tens === 3 || tens === 9)
      style = { ...style, fg: `a-fg${(code % 10) + (tens > 3 ? 8 : 0)}` };
    else if (tens === 4 || tens === 10)
      style = { ...style, bg: `a-bg${(code % 10) + (tens > 4 ? 8 : 0)}` };
  }
  return style;
}

/** The one of 16 colours that is nearest to one of 256. */
function ofPalette(index = 7) {
  if (index < 16) return index;
  if (index >= 232) return index < 244 ? 8 : 7;
  const place = index - 16;
  return nearest([Math.floor(place / 36), Math.floor(place / 6) % 6, place % 6].map((c) => c * 51));
}

/** The one of 16 colours that is nearest to red, green and blue: a bit for each strong channel. */
function nearest(channels) {
  const top = Math.max(...channels);
  const bits = channels.reduce((sum, value, i) => sum + (value > top / 2 ? 1 << i : 0), 0);
  return top < 64 ? 0 : bits + (top > 192 ? 8 : 0);
}

/** Counts of added and removed lines, such as "+3 −1". */
export function diffSize(text) {
  const count = (pattern) => text.match(pattern)?.length ?? 0;
  return `+${count(/^\+(?!\+\+ )/gm)} −${count(/^-(?!-- )/gm)}`;
}

/** A block that shows the replacement of one text by another. */
export function replacementBlock(before, after) {
  const pre = el("pre.untrusted.diff", { dir: "ltr" });
  const signed = (text, sign) =>
    text
      .replace(/\n$/, "")
      .split("\n")
      .map((line) => sign + line);
  appendLines(pre, [...signed(before, "-"), ...signed(after, "+")].map(signedLine));
  return el("div.block", pre);
}

function signedLine(text) {
  return { text, kind: { "+": "add", "-": "del" }[text[0]] ?? "same" };
}

/** A function that appends chunks of a diff to an element, line by line. */
function diffWriter(parent) {
  const place = { old: 0, now: 0, oldLeft: 0, nowLeft: 0, isCodex: false };
  let open = "";
  return (chunk, isLast) => {
    const lines = (open + chunk).split("\n");
    open = isLast ? "" : lines.pop();
    if (isLast && lines.at(-1) === "") lines.pop();
    appendLines(
      parent,
      lines.map((text) => diffLine(text, place)),
    );
  };
}

/** The kind and the numbers of one line of a diff; `place` moves on. */
function diffLine(text, place) {
  const hunk = text.match(/^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@/);
  if (hunk) {
    [place.old, place.oldLeft, place.now, place.nowLeft] = hunk.slice(1).map((n) => Number(n ?? 1));
    return { text, kind: "hunk" };
  }
  if (place.oldLeft > 0 || place.nowLeft > 0) {
    const line = signedLine(text);
    if (text.startsWith("\\")) return { text, kind: "meta" };
    if (line.kind !== "add") line.old = place.old++;
    if (line.kind !== "del") line.now = place.now++;
    if (line.kind !== "add") place.oldLeft -= 1;
    if (line.kind !== "del") place.nowLeft -= 1;
    return line;
  }
  place.isCodex ||= text.startsWith("*** Begin");
  if (text.startsWith("diff --git ") || /^\*\*\* \w+ File/.test(text))
    return { text, kind: "file" };
  return place.isCodex && !/^(?:\*\*\*|@@)/.test(text) ? signedLine(text) : { text, kind: "meta" };
}

/** Appends lines; where as many lines are added as removed, the changed part of each is marked. */
function appendLines(parent, lines) {
  for (let start = 0; start < lines.length; start += 1) {
    const length = (from, kind) => lines.slice(from).findIndex((line) => line.kind !== kind);
    if (lines[start].kind !== "del" || lines[start - 1]?.kind === "del") continue;
    const removed = length(start, "del");
    if (removed < 0) break;
    const added = length(start + removed, "add");
    if (removed !== (added < 0 ? lines.length - start - removed : added)) continue;
    for (let i = start; i < start + removed; i += 1) markChange(lines[i], lines[i + removed]);
  }
  const spans = lines.map(({ text, kind, old, now, change = [text.length, text.length] }) => {
    const [from, to] = change;
    const marked = to > from ? el("mark", text.slice(from, to)) : null;
    const numbers = { "data-old": old, "data-now": now };
    return el(`span.line.${kind}`, numbers, text.slice(0, from), marked, text.slice(to), "\n");
  });
  parent.append(...spans);
}

/** Notes the part of two lines that is not common, where it is not nearly all of them. */
function markChange(removed, added) {
  const [a, b] = [removed.text, added.text];
  const shorter = Math.min(a.length, b.length);
  if (Math.max(a.length, b.length) > MAX_COMPARED) return;
  let [head, tail] = [1, 0];
  while (head < shorter && a[head] === b[head]) head += 1;
  while (tail < shorter - head && a.at(-1 - tail) === b.at(-1 - tail)) tail += 1;
  if (head + tail < shorter / 3) return;
  removed.change = [head, a.length - tail];
  added.change = [head, b.length - tail];
}
