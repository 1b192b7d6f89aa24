/** The comparison pages: two runs with paired statistics, and two episodes turn by turn. */

import { episodeLink, loadComparison, loadRuns, pageLink, pairLink, runLabel } from "./data.js";
import { button, el, facts, folded, notice, redraw, select, table } from "./dom.js";
import { loadEpisode, patchBlock, turnView } from "./episode.js";
import { listLink } from "./episodes.js";
import { badge, duration, estimate, number, percent, points, status, words } from "./format.js";

const ROWS = 20; // pairs of turns displayed at a time
const FLIPS = 50; // flipped tasks that the page displays at first

/** The page that compares two runs. */
export async function comparePage({ params }) {
  const runs = await loadRuns();
  const [a, b] = [params.get("a") ?? "", params.get("b") ?? ""];
  const go = (first, second) => {
    location.hash = pageLink(["compare"], { a: first, b: second });
  };
  const options = [["", "choose a run"], ...runs.map((run) => [run.id, runLabel(run)])];
  const choices = el(
    "div.row",
    select("A", options, a, (value) => go(value, b)),
    select("B", options, b, (value) => go(a, value)),
    a && b ? button("Swap", () => go(b, a), { "data-key": "swap" }) : null,
  );
  const result =
    a && b && a !== b
      ? await loadComparison(a, b).then(comparisonView, (error) => notice("error", error.message))
      : notice("info", "Choose two different runs.");
  return { title: "Compare", crumbs: [["Compare"]], node: [el("h1", "Two runs"), choices, result] };
}

function comparisonView(result) {
  const { p_value: p, difference: diff } = result;
  const tiles = [
    [`A ${result.measure}`, estimate(result.rate_a, percent)],
    [`B ${result.measure}`, estimate(result.rate_b, percent)],
    ["B − A, points", estimate(diff, points)],
    ["p, McNemar’s exact test", p < 0.0001 ? "< 0.0001" : number(p, 4)],
    ["Cohen’s d", number(result.cohens_d, 2)],
    ["Tasks higher in B, lower in B", `${number(result.num_better)}, ${number(result.num_worse)}`],
    ["Tasks in both", number(diff.num_tasks)],
  ];
  return [
    facts(tiles, "tiles"),
    result.warnings.map((warning) => notice("warning", warning)),
    el("h2", "Tasks that differ"),
    flipTable(result),
    el("small", "Rates are means over the tasks in both runs, with 95 % intervals."),
  ];
}

function flipTable({ a, b, flips, measure }) {
  if (flips.length === 0) return notice("info", `The ${measure} rates of each task are equal.`);
  const link = ({ task }) => {
    const href = pairLink({ run: a.id, task, attempt: 0 }, { run: b.id, task, attempt: 0 });
    return el("a", { href, "data-item": true, "data-key": task }, task);
  };
  const change = (row) => {
    const isHigher = row.b > row.a;
    return status(isHigher === (measure === "resolved"), isHigher ? "higher in B" : "lower in B");
  };
  const columns = [
    ["Task", link, "heading"],
    ["A", (row) => percent(row.a), "number"],
    ["B", (row) => percent(row.b), "number"],
    ["B − A", (row) => points(row.b - row.a), "number"],
    ["Change", change],
  ];
  return table("Tasks that differ", columns, flips, null, FLIPS);
}

/** Loads the episode of a side from the parameter `RUN|TASK|ATTEMPT`. */
async function openSide(letter, text) {
  const parts = (text ?? "").split("|");
  const attempt = Number(parts.at(-1));
  const id = { run: parts[0], task: parts.slice(1, -1).join("|"), attempt };
  const episode = await loadEpisode(id);
  return { letter, id, episode, turns: episode.turns };
}

/** The number of identical turns at the start of both episodes. */
function commonTurns([a, b]) {
  const first = a.turns.findIndex((turn, i) => turn.digest !== b.turns[i]?.digest);
  return first < 0 ? a.turns.length : first;
}

/** The page that displays two episodes side by side, from the first turn that differs. */
export async function pairPage({ params }) {
  const open = (letter) => openSide(letter, params.get(letter.toLowerCase()));
  const sides = await Promise.all(["A", "B"].map(open));
  const { run, task } = sides[0].id;
  const common = commonTurns(sides);
  const end = Math.max(...sides.map((side) => side.turns.length));
  const [rows, more] = [el("div"), el("div")];
  let shown = common;
  const extend = () => {
    const next = Math.min(shown + ROWS, end);
    for (; shown < next; shown += 1) rows.append(turnRow(sides, shown));
    const further = button("Show more turns", extend, { "data-more": true });
    redraw(more, shown < end ? further : null);
  };
  extend();
  const jump = () => {
    rows.firstElementChild.focus({ preventScroll: true });
    rows.firstElementChild.scrollIntoView();
  };
  const first = button(`First difference: turn ${common}`, jump, { "data-shortcut": "f" });
  const isDifferent = (value) => value(sides[0]) !== value(sides[1]);
  const patches = () => halves(sides, ({ id, episode }) => patchBlock(id, episode));
  const title = `${task}: two episodes`;
  return {
    title,
    crumbs: [[run, listLink(run)], [title]],
    node: [
      el("div.row", el("h1", title), el("span.row.actions", common < end ? first : null)),
      isDifferent(({ id }) => id.task) ? notice("warning", "The tasks are different.") : null,
      isDifferent(({ episode }) => JSON.stringify(episode.prompt))
        ? notice("info", "The prompts are different.")
        : null,
      sidesTable(sides),
      folded("Patches", patches),
      el("h2", "Turns"),
      commonPart(sides[0], common),
      rows,
      more,
    ],
  };
}

/** The table of the outcomes and measures of two episodes. */
function sidesTable(sides) {
  const link = ({ id }) => el("a", { href: episodeLink(id) }, id.run);
  const tokens = (usage) => (usage.prompt_tokens ?? 0) + (usage.completion_tokens ?? 0);
  const columns = [
    ["Side", ({ letter }) => letter],
    ["Run", link, "heading"],
    ["Attempt", ({ id }) => id.attempt, "number"],
    ["Outcome", ({ episode }) => badge(episode.outcome)],
    ["Reason", ({ episode }) => words(episode.grade?.reason ?? episode.error_class)],
    ["Ended by", ({ episode }) => words(episode.stop_reason), "wide"],
    ["Turns", ({ episode }) => number(episode.turns.length), "number"],
    ["Tokens", ({ episode }) => number(tokens(episode.usage)), "number wide"],
    ["Time", ({ episode }) => duration(episode.duration_s), "number"],
  ];
  return table("The two episodes", columns, sides);
}

/** Two columns: the element that `make` returns for each side. */
function halves(sides, make, attributes = {}) {
  const parts = sides.map((side) => el("div", el("small", side.letter), make(side)));
  return el("div.columns", attributes, parts);
}

/** The common turns of both episodes, folded; unfolding creates their elements. */
function commonPart({ id, turns }, common) {
  if (common === 0) return el("small", "The episodes differ from the first turn on.");
  const label = common === 1 ? "The first turn is" : `The first ${number(common)} turns are`;
  const shown = Math.min(common, ROWS);
  return folded(`${label} identical`, () => [
    turns.slice(0, shown).map((turn, i) => turnView(id, turn, i)),
    el("a", { href: episodeLink(id, { turn: shown }) }, "Open the episode at the next turn"),
  ]);
}

/** The turn `index` of both episodes, side by side. */
function turnRow(sides, index) {
  const ended = el("small", "This episode has ended.");
  const half = ({ id, turns }) => (turns[index] ? turnView(id, turns[index], index) : ended);
  return halves(sides, half, { "data-item": true, tabindex: -1 });
}
