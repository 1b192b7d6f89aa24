/** Blocks of untrusted text: colours of terminals, differences, and texts of any length. */

import { button, el, failure, hiddenMark, redraw, visible } from "./dom.js";
import { number } from "./format.js";

const CHUNK = [20_000, 1_000]; // characters and lines that are put into the page at once
const PREVIEW = [3_000, 30]; // the same, of a text in a turn
const MAX_SPANS = 2_000; // per chunk; text behind so many changes of colour stays plain

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
    const next = shown < known.length || more ? button(label, advance) : el("small", cut);
    redraw(foot, rest > 0 ? next : null);
  };
  const advance = async () => {
    try {
      if (shown === known.length) {
        redraw(foot, el("small", "Loading …"));
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
    const text = open + chunk.replaceAll("\r\n", "\n").replaceAll("\r", `${hiddenMark("\r")}\n`);
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

/** What codes of colour sequences change in a style, which is a class by kind. */
const STYLE_CODES = {
  1: { bold: "a-bold" },
  4: { line: "a-line" },
  7: { back: "a-back" },
  22: { bold: "" },
  24: { line: "" },
  27: { back: "" },
  39: { colour: "" },
  49: { back: "" },
};

/** The style behind the codes of one SGR sequence (ECMA-48, 8.3.117). */
function nextStyle(before, codes) {
  const numbers = codes.split(/[;:]/).slice(0, 32).map(Number);
  let style = before;
  for (let i = 0; i < numbers.length; i += 1) {
    const code = numbers[i];
    const colour = (index) => ({ colour: index % 7 ? `a-${index}` : "" }); // no black, no white
    if (code === 0) style = {};
    else if (code === 38 || code === 48) {
      const rest = numbers.slice(i + 1, i + 5);
      const index = rest[0] === 2 ? nearest(rest.slice(1)) : ofPalette(rest[1]);
      style = { ...style, ...(code === 38 ? colour(index) : { back: "a-back" }) };
      i += rest[0] === 2 ? 4 : 2;
    } else if (code in STYLE_CODES) style = { ...style, ...STYLE_CODES[code] };
    else if ((code >= 30 && code < 38) || (code >= 90 && code < 98)) {
      style = { ...style, ...colour(code % 10) };
    } else if ((code >= 40 && code < 48) || (code >= 100 && code < 108)) {
      style = { ...style, back: "a-back" };
    }
  }
  return style;
}

/** The one of 8 colours that is nearest to one of 256. */
function ofPalette(index = 7) {
  if (index < 16 || index > 231) return index < 16 ? index % 8 : 7;
  return nearest([(index - 16) / 36, ((index - 16) / 6) % 6, (index - 16) % 6].map(Math.floor));
}

/** The one of 8 colours that is nearest to red, green and blue: a bit for each strong channel. */
function nearest(channels) {
  const middle = Math.max(...channels) / 2;
  return channels.reduce((sum, value, i) => sum + (value > middle ? 1 << i : 0), 0);
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

/** Appends lines of a diff with their kinds and numbers. */
function appendLines(parent, lines) {
  const spans = lines.map(({ text, kind, old, now }) =>
    el(`span.line.${kind}`, { "data-old": old, "data-now": now }, text, "\n"),
  );
  parent.append(...spans);
}
