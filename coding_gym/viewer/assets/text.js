/** Blocks of untrusted text: colours of terminals, differences, and texts of any length. */

import { button, el, failure, hiddenMark, redraw, visible } from "./dom.js";
import { number } from "./format.js";

const CHUNK = [20_000, 1_000]; // characters and lines added to the page at a time
const PREVIEW = [3_000, 30]; // the same for a text in a turn
const MAX_SPANS = 300; // per chunk; text after this many changes of colour stays plain

/**
 * A block for {text, total}, where `more(offset)` loads the rest of the text; without `more` it
 * displays that the text is cut. The kind is any of the classes prose, command, output (of a
 * terminal, whose colours are shown) and whole (which shows more of it at first).
 */
export function textBlock(text, more = null, kind = "") {
  const isDiff = /^(?:diff --git |--- \S.*\n\+\+\+ |\*\*\* Begin Patch)/m.test(
    text.text.slice(0, 2_000),
  );
  const pre = el("pre", { class: `untrusted ${kind}`, dir: "ltr" });
  const plain = (chunk) => pre.append(visible(chunk));
  const write = isDiff ? diffWriter(pre) : kind.includes("output") ? terminalWriter(pre) : plain;
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

/** The number of characters as on the server: a pair of surrogates is one. */
function codePoints(text) {
  return text.length - (text.match(/[\ud800-\udbff][\udc00-\udfff]/g)?.length ?? 0);
}

/** The end of a chunk: after its characters or lines, never within a surrogate pair. */
function chunkEnd(text, start, maxChars, maxLines) {
  let [end, lines] = [start, 0];
  const limit = Math.min(start + maxChars, text.length);
  for (; lines < maxLines && end >= 0 && end < limit; lines += 1) {
    end = text.indexOf("\n", end) + 1 || limit;
  }
  end = Math.min(end, limit);
  return end + (/[\udc00-\udfff]/.test(text.charAt(end)) ? 1 : 0);
}

/** Control sequences; group 1 matches colours. Control strings contain text and stay. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: these are what it looks for
export const SEQUENCES = /\x1b\[(?:([\d;:]{0,64})m|[0-?]{0,64}[ -/]{0,4}[@-~])/g;

/** An incomplete sequence at the end of a chunk; the next chunk may complete it. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: these are what it looks for
const OPEN_SEQUENCE = /\x1b(?:\[[0-?]{0,64}[ -/]{0,4})?$/;

/** A function that appends chunks of a terminal's output to an element. */
function terminalWriter(parent) {
  let [style, open] = [{}, ""];
  return (chunk, isLast) => {
    const text = open + chunk.replaceAll("\r\n", "\n").replaceAll("\r", `${hiddenMark("\r")}\n`);
    open = isLast ? "" : (text.match(OPEN_SEQUENCE)?.[0] ?? "");
    const pieces = [];
    let start = 0;
    const flush = (end) => {
      const piece = text.slice(start, end);
      const name = pieces.length < MAX_SPANS ? Object.values(style).filter(Boolean).join(".") : "";
      if (piece) pieces.push(name ? el(`span.${name}`, piece) : visible(piece));
    };
    for (const match of text.matchAll(SEQUENCES)) {
      flush(match.index);
      start = match.index + match[0].length;
      if (match[1] !== undefined) style = nextStyle(style, match[1]);
    }
    flush(text.length - open.length);
    parent.append(...pieces);
  };
}

/** Classes of the eight colours; black and white have the colour of text. */
const COLOURS = ["", "error", "good", "bad", "blue", "error", "blue", ""];

/** The style after the codes of one SGR sequence (ECMA-48, 8.3.117), without backgrounds. */
function nextStyle(before, codes) {
  const numbers = codes.split(/[;:]/).slice(0, 32).map(Number);
  let style = before;
  for (let i = 0; i < numbers.length; i += 1) {
    const code = numbers[i];
    if (code === 0) style = {};
    else if (code === 38 || code === 48) {
      const [kind, index] = numbers.slice(i + 1, i + 3);
      const colour = kind === 5 && index < 16 ? COLOURS[index % 8] : ""; // others stay plain
      if (code === 38) style = { ...style, colour };
      i += kind === 2 ? 4 : 2;
    } else if (code === 1 || code === 22) style = { ...style, bold: code === 1 ? "a-bold" : "" };
    else if (/^[39]\d$/.test(code)) style = { ...style, colour: COLOURS[code % 10] ?? "" };
  }
  return style;
}

/** A block that displays the replacement of one text by another. */
export function replacementBlock(before, after) {
  const lines = (kind, sign, text) => {
    const texts = text.replace(/\n$/, "").split("\n");
    return texts.map((line) => el(`span.line.${kind}`, sign + line, "\n"));
  };
  const spans = [lines("del", "-", before), lines("add", "+", after)];
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

/** Prefixes of lines of a diff and their kinds; the first match counts. */
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
