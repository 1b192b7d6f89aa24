/** Two things side by side: runs with their paired statistics, episodes turn by turn. */

import { barChart } from "./charts.js";
import { episodeLink, load, loadComparison, pageLink, pairLink } from "./data.js";
import { badge, button, el, facts, folded, notice, redraw, select, status, table } from "./dom.js";
import { loadEpisode, loadTurns, patchBlock, turnView } from "./episode.js";
import { listLink } from "./episodes.js";
import { duration, estimate, isNumber, number, percent, points, words } from "./format.js";

const ROWS = 20; // pairs of turns shown at once
const MAX_TESTS = 200; // tests that differ and are shown

/** The page of two runs compared. */
export async function comparePage({ params }) {
  const { runs } = await load("api/runs");
  const [a, b] = [params.get("a") ?? "", params.get("b") ?? ""];
  const go = (first, second) => {
    location.hash = pageLink(["compare"], { a: first, b: second });
  };
  const options = [["", "choose a run"], ...runs.map((run) => [run.id, run.name])];
  const choices = el(
    "div.toolbar",
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
  const counts = [result.num_common, result.num_only_a, result.num_only_b];
  const tiles = [
    ["A resolved", estimate(result.rate_a, percent)],
    ["B resolved", estimate(result.rate_b, percent)],
    ["B − A, points", estimate(result.difference, points)],
    ["p, McNemar’s exact test", number(result.p_value, 4)],
    ["Cohen’s d", number(result.cohens_d, 2)],
    ["Tasks better, worse in B", `${number(result.num_better)}, ${number(result.num_worse)}`],
    ["Tasks in both, only A, only B", counts.map((count) => number(count)).join(", ")],
  ];
  const rows = result.repositories.map((row) => ({
    label: [row.repo, el("small", ` ${number(row.num_tasks)} tasks`)],
    bars: [
      { estimate: row.a, series: "A" },
      { estimate: row.b, series: "B" },
    ],
  }));
  return [
    el("p.verdict", differenceText(result)),
    facts(tiles, "tiles"),
    result.warnings.map((warning) => notice("warning", warning)),
    el("h2", "Tasks that differ"),
    flipTable(result),
    rows.length > 0 ? el("h2", "Repositories") : null,
    rows.length > 0 ? barChart("Resolved", rows, percent, 1) : null,
    el("p.note", "Rates are means over the tasks in both runs, with 95 % intervals."),
  ];
}

/** The difference as a sentence. */
function differenceText({ difference: { value, low, high }, p_value: p }) {
  if (!isNumber(value)) return "The runs have no task in common.";
  const size = points(Math.abs(value)).slice(1);
  const relation =
    size === "0.0" ? "as much as" : `${size} points ${value > 0 ? "more" : "less"} than`;
  const interval = isNumber(low) ? ` (95 % interval ${points(low)} to ${points(high)})` : "";
  const chance = p < 0.05 ? "" : " This may be chance.";
  return `B resolves ${relation} A${interval}.${chance}`;
}

function flipTable({ a, b, flips }) {
  if (flips.length === 0) return notice("info", "Both runs resolve the same tasks equally often.");
  const task = (row) => {
    const place = { task: row.task, attempt: 0 };
    const href = pairLink({ run: a.id, ...place }, { run: b.id, ...place });
    return el("a", { href, "data-item": true, "data-key": row.task }, row.task);
  };
  return table(
    "Tasks that differ",
    [
      ["Task", task, "heading"],
      ["A", (row) => percent(row.a), "number"],
      ["B", (row) => percent(row.b), "number"],
      ["B − A", (row) => points(row.b - row.a), "number"],
      ["", (row) => status(row.b > row.a, row.b > row.a ? "better in B" : "worse in B")],
    ],
    flips,
  );
}

/** The place of an episode from `RUN|TASK|ATTEMPT`. */
function placeOf(text) {
  const parts = (text ?? "").split("|");
  return { run: parts[0], task: parts.slice(1, -1).join("|"), attempt: Number(parts.at(-1)) };
}

/** One episode, whose turns are loaded as far as they are asked for. */
async function openSide(letter, text) {
  const place = placeOf(text);
  const episode = await loadEpisode(place);
  const turns = [...episode.turns];
  const upTo = async (count) => {
    while (turns.length < Math.min(count, episode.num_turns)) {
      turns.push(...(await loadTurns(place, turns.length)));
    }
  };
  return { letter, place, episode, turns, upTo };
}

/** The number of turns that begin both episodes in the same way. */
async function commonTurns(a, b) {
  const end = Math.min(a.episode.num_turns, b.episode.num_turns);
  for (let i = 0; i < end; i += 1) {
    await Promise.all([a.upTo(i + 1), b.upTo(i + 1)]);
    if (a.turns[i].digest !== b.turns[i].digest) return i;
  }
  return end;
}

/** The page of two episodes side by side, from the first turn that differs. */
export async function pairPage({ params }) {
  const letters = { A: params.get("a"), B: params.get("b") };
  const sides = await Promise.all(Object.entries(letters).map((entry) => openSide(...entry)));
  const [a, b] = sides;
  const common = await commonTurns(a, b);
  const end = Math.max(a.episode.num_turns, b.episode.num_turns);
  const [rows, more] = [el("div"), el("div")];
  let shown = common;
  const extend = async () => {
    const next = Math.min(shown + ROWS, end);
    await Promise.all(sides.map((side) => side.upTo(next)));
    for (; shown < next; shown += 1) rows.append(turnRow(sides, shown));
    const label = `Turns ${shown} to ${Math.min(shown + ROWS, end) - 1}`;
    redraw(more, shown < end ? button(label, extend, { "data-more": true }) : null);
  };
  await extend();
  const jump = () => {
    rows.firstElementChild.focus({ preventScroll: true });
    rows.firstElementChild.scrollIntoView({ block: "start" });
  };
  const first = button(`First difference: turn ${common}`, jump, { "data-shortcut": "f" });
  const prompts = sides.map(({ episode }) => JSON.stringify(episode.prompt));
  const title = `${a.place.task}: two episodes`;
  return {
    title,
    crumbs: [[a.place.run, listLink(a.place.run)], [title]],
    node: [
      el("div.title", el("h1", title), el("span.actions", common < end ? first : null)),
      a.place.task === b.place.task ? null : notice("warning", "The tasks differ."),
      prompts[0] === prompts[1] ? null : notice("info", "The prompts differ."),
      sidesTable(sides),
      testDifferences(sides),
      folded("Patches", () => halves(sides, ({ place, episode }) => patchBlock(place, episode))),
      el("h2", "Turns"),
      commonPart(a, common, end),
      rows,
      more,
    ],
  };
}

/** What two episodes came to. */
function sidesTable(sides) {
  const link = ({ place }) => {
    return el("a", { href: episodeLink(place) }, `${place.run} · attempt ${place.attempt}`);
  };
  return table(
    "The two episodes",
    [
      ["Side", ({ letter }) => letter],
      ["Episode", link, "heading"],
      ["Outcome", ({ episode }) => badge(episode.outcome)],
      ["Reason", ({ episode }) => words(episode.grade?.reason ?? episode.error_class)],
      ["Ended by", ({ episode }) => words(episode.stop_reason), "wide"],
      ["Turns", ({ episode }) => number(episode.num_turns), "number"],
      ["Tokens", ({ episode }) => number(episode.usage.tokens), "number wide"],
      ["Time", ({ episode }) => duration(episode.duration_s), "number"],
    ],
    sides,
  );
}

/** The tests whose status differs. */
function testDifferences(sides) {
  const [first, second] = sides.map(
    ({ episode }) => new Map(episode.grade?.tests.map((test) => [test.test, test.status])),
  );
  const differing = [...new Set([...first.keys(), ...second.keys()])]
    .filter((name) => first.get(name) !== second.get(name))
    .slice(0, MAX_TESTS);
  if (differing.length === 0) return null;
  const state = (name, statuses) => {
    const word = statuses.get(name);
    return status(word === "passed", word ?? "not run");
  };
  const columns = [
    ["Test", (name) => el("code", name), "heading"],
    ["A", (name) => state(name, first)],
    ["B", (name) => state(name, second)],
  ];
  const make = () => table("Tests that differ", columns, differing);
  return folded(`Tests that differ (${differing.length})`, make);
}

/** The same part of both episodes, side by side. */
function halves(sides, make) {
  return el(
    "div.sides",
    sides.map((side) => el("div", el("span.series", side.letter), make(side))),
  );
}

/** The turns that both episodes share, made when they are unfolded. */
function commonPart({ place, turns }, common, end) {
  if (common === 0) return el("p.note", "The first turns already differ.");
  const which = common === end ? "All turns" : `The first ${number(common)} turns`;
  return folded(`${common === 1 ? "The first turn is" : `${which} are`} the same`, () => [
    turns
      .slice(0, ROWS)
      .slice(0, common)
      .map((turn) => turnView(place, turn)),
    common > ROWS
      ? el("a", { href: episodeLink(place, { turn: ROWS }) }, "The others in the episode")
      : null,
  ]);
}

/** The turns of the same number of both episodes. */
function turnRow(sides, number) {
  const half = ({ place, turns }) =>
    turns[number] ? turnView(place, turns[number]) : el("p.note", "This episode has ended.");
  const row = halves(sides, half);
  for (const turn of row.querySelectorAll("[data-item]")) turn.removeAttribute("data-item");
  row.setAttribute("data-item", "");
  row.setAttribute("tabindex", -1);
  return row;
}
