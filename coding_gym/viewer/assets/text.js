/** Blocks of untrusted text: terminal output, diffs, and texts of any length. */

import { button, el, failure, hiddenMark, redraw, visible } from "./dom.js";
import { number } from "./format.js";

const CHUNK = [20_000, 1_000]; // characters and lines added to the page at a time
const PREVIEW = [3_000, 30]; // characters and lines displayed at first
const MAX_SPANS = 300; // coloured spans per chunk; later text of the chunk stays plain

/**
 * A block for {text, total}, where `more(offset)` loads the rest of the text; without `more`, a
 * note says that the text is truncated. The kind contains any of the classes prose, command, output
 * (with terminal colours) and whole (displays `CHUNK` instead of `PREVIEW` at first).
 */
export function textBlock(text, more = null, kind = "") {
  const isDiff = /^(?:diff --git |--- \S.*\n\+\+\+ |\*\*\* Begin Patch)/m.test(
    text.text.slice(0, 2_000),
  );
  const pre = el("pre", { class: `untrusted ${kind}`, dir: "ltr" });
  const plain = (chunk) => pre.append(visible(chunk));
  const write = isDiff ? diffWriter(pre) : kind.includes("output") ? terminalWriter(pre) : plain;
  const foot = el("div");
  let [buffer, shown, loaded, total] = [text.text, 0, codePoints(text.text), text.total];
  const show = (limits) => {
    const end = chunkEnd(buffer, shown, ...limits);
    write(buffer.slice(shown, end), end === buffer.length && loaded >= total);
    shown = end;
    const rest = total - loaded + buffer.length - shown;
    const label = `Show more of ${number(rest)} characters`;
    const note = `${number(rest)} more characters are not in this report.`;
    const next = shown < buffer.length || more ? button(label, advance) : el("small", note);
    redraw(foot, rest > 0 ? next : null);
  };
  const advance = async () => {
    try {
      if (shown === buffer.length) {
        redraw(foot, el("small", "Loading …"));
        const next = await more(loaded);
        [buffer, shown] = [next.text, 0];
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

/** The number of code points, which is the server's number of characters. */
function codePoints(text) {
  return text.length - (text.match(/[\ud800-\udbff][\udc00-\udfff]/g)?.length ?? 0);
}

/** The end of a chunk of at most `maxChars` and `maxLines`, never within a surrogate pair. */
function chunkEnd(text, start, maxChars, maxLines) {
  let [end, lines] = [start, 0];
  const limit = Math.min(start + maxChars, text.length);
  for (; lines < maxLines && end >= 0 && end < limit; lines += 1) {
    end = text.indexOf("\n", end) + 1 || limit;
  }
  end = Math.min(end, limit);
  return end + (/[\udc00-\udfff]/.test(text.charAt(end)) ? 1 : 0);
}

/** Terminal control sequences; group 1 matches colour codes. Control strings do not match. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: it matches control characters
export const SEQUENCES = /\x1b\[(?:([\d;:]{0,64})m|[0-?]{0,64}[ -/]{0,4}[@-~])/g;

/** An incomplete sequence at the end of a chunk; the next chunk may complete it. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: it matches control characters
const OPEN_SEQUENCE = /\x1b(?:\[[0-?]{0,64}[ -/]{0,4})?$/;

/** Returns a function that appends chunks of terminal output to an element. */
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

/** CSS classes of the eight terminal colours; black and white have none. */
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
      const colour = kind === 5 && index < 16 ? COLOURS[index % 8] : ""; // other colours stay plain
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

/** Returns a function that appends chunks of a diff to an element, line by line. */
function diffWriter(parent) {
  let open = "";
  return (chunk, isLast) => {
    const lines = (open + chunk).split("\n");
    open = isLast && lines.at(-1) ? "" : lines.pop();
    parent.append(...lines.map(diffLine));
  };
}

/** Pairs of a diff line's prefix and the kind of the line; the first match counts. */
const LINE_KINDS = [
  [/^(?:diff --git |\*\*\* \w+ File)/, "file"],
  [/^(?:@@|---|\+\+\+|\*\*\*|\\ No newline|index |new |deleted |old |similarity |rename )/, "meta"],
  [/^\+/, "add"],
  [/^-/, "del"],
  [/^/, "same"],
];

function diffLine(text) {
  const [, kind] = LINE_KINDS.find(([prefix]) => prefix.test(text));
  return el(`span.line.${kind}`, text, "\n");
}
