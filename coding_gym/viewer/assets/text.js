/** Blocks of untrusted text: colours of terminals, differences, and texts of any length. */

import { button, el, failure, hiddenMark, redraw, visible } from "./dom.js";
import { number } from "./format.js";

const CHUNK = [20_000, 1_000]; // characters and lines that are put into the page at once
const PREVIEW = [3_000, 30]; // the same, of a text in a turn
const MAX_SPANS = 300; // per chunk; text behind so many changes of colour stays plain

/**
 * A block for {text, total}, where `more(offset)` loads what `text` lacks of the total; without it
 * the block says that the text is cut. The kind is any of the classes prose, output, command and
 * whole (which shows more of it at first).
 */
export function textBlock(text, more = null, kind = "") {
  const isDiff = /^(?:diff --git |--- \S.*\n\+\+\+ |\*\*\* Begin Patch)/m.test(
    text.text.slice(0, 2_000),
  );
  const pre = el("pre", { class: `untrusted ${kind}`, dir: "ltr" });
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

/** Where a chunk ends: behind so many characters or lines, and never within a pair. */
function chunkEnd(text, start, maxChars, maxLines) {
  let [end, lines] = [start, 0];
  const limit = Math.min(start + maxChars, text.length);
  for (; lines < maxLines && end >= 0 && end < limit; lines += 1) {
    end = text.indexOf("\n", end) + 1 || limit;
  }
  end = Math.min(end, limit);
  return end + (/[\udc00-\udfff]/.test(text.charAt(end)) ? 1 : 0);
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
      const piece = text.slice(start, end);
      const name = pieces.length < MAX_SPANS ? Object.values(style).filter(Boolean).join(".") : "";
      if (piece) pieces.push(name ? el(`span.${name}`, piece) : visible(piece));
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

/** Classes of the eight colours; black and white are that of the text. */
const COLOURS = ["", "error", "good", "bad", "blue", "error", "blue", ""];

/** What codes of colour sequences change in a style, which is a class by kind. */
const STYLE_CODES = {
  1: { bold: "a-bold" },
  7: { back: "a-back" },
  22: { bold: "" },
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
    const tens = Math.floor((code >= 90 ? code - 60 : code) / 10); // 3 letters, 4 background
    const colour = (index) => ({ colour: COLOURS[index % 8] });
    if (code === 0) style = {};
    else if (code === 38 || code === 48) {
      const rest = numbers.slice(i + 1, i + 5);
      const index = rest[0] === 5 && rest[1] < 16 ? rest[1] : 0; // others stay plain
      style = { ...style, ...(code === 38 ? colour(index) : { back: "a-back" }) };
      i += rest[0] === 2 ? 4 : 2;
    } else if (code in STYLE_CODES) style = { ...style, ...STYLE_CODES[code] };
    else if (tens === 3) style = { ...style, ...colour(code % 10) };
    else if (tens === 4) style = { ...style, back: "a-back" };
  }
  return style;
}

/** A block that shows the replacement of one text by another. */
export function replacementBlock(before, after) {
  const lines = (text, sign) =>
    text
      .replace(/\n$/, "")
      .split("\n")
      .map((line) => sign + line);
  const kinds = { del: lines(before, "-"), add: lines(after, "+") };
  const spans = Object.entries(kinds).map(([kind, texts]) =>
    texts.map((text) => el(`span.line.${kind}`, text, "\n")),
  );
  return el("div.block", el("pre.untrusted", { dir: "ltr" }, spans));
}

/** A function that appends chunks of a diff to an element, line by line. */
function diffWriter(parent) {
  let open = "";
  return (chunk, isLast) => {
    const lines = (open + chunk).split("\n");
    open = isLast && lines.at(-1) ? "" : lines.pop();
    parent.append(...lines.map(diffLine));
  };
}

/** The beginnings of lines of a diff and their kinds; the first that fits counts. */
const LINE_KINDS = [
  [/^(?:diff --git |\*\*\* \w+ File)/, "file"],
  [/^(?:@@|---|\+\+\+|\*\*\*|\\ No newline|index |new |deleted |old |similarity |rename )/, "meta"],
  [/^\+/, "add"],
  [/^-/, "del"],
  [/^/, "same"],
];

function diffLine(text) {
  const [, kind] = LINE_KINDS.find(([beginning]) => beginning.test(text));
  return el(`span.line.${kind}`, text, "\n");
}
