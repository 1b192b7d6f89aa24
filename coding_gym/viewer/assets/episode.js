/** The page of one episode: verdict, patch, usage over time, and turns. */

import { lineChart } from "./charts.js";
import { episodeLink, isReport, loadRun, loadRuns, pairLink, runLabel } from "./data.js";
import { button, el, facts, folded, notice, redraw, select, table } from "./dom.js";
import { listLink } from "./episodes.js";
import { badge, cost, duration, isNumber, number, status, time, words } from "./format.js";
import { replacementBlock, textBlock } from "./text.js";

const TURNS = 50; // turns added to the page at a time
const SHOWN_TESTS = 50; // failed tests displayed at first
const MAX_PARTS = 200; // displayed messages per prompt, calls per turn, arguments per call
const LONG_PATCH = 4_000; // characters; a longer patch is folded

/** Loads the data of an episode; its id is {run, task, attempt}. */
export function loadEpisode({ run, task, attempt }) {
  return loadRun(run, "episode", { task, attempt });
}

function cumulativeSums(values) {
  let sum = 0;
  return values.map((value) => {
    sum += value;
    return sum;
  });
}

/** A block of an episode's text; `path` locates the text in the data. */
function episodeText({ run, task, attempt }, path, text, kind = "") {
  const more = (offset) => loadRun(run, "text", { task, attempt, path, offset });
  return textBlock(text, isReport ? null : more, kind);
}

/** The page of one episode. */
export async function episodePage({ segments, params }) {
  const attempt = Number(params.get("attempt") ?? 0);
  const id = { run: segments[1], task: params.get("task") ?? "", attempt };
  const [episode, runs, { episodes }] = await Promise.all([
    loadEpisode(id),
    loadRuns(),
    loadRun(id.run, "episodes"),
  ]);
  const list = turnList(id, episode, Number(params.get("turn") ?? 0));
  const sections = [
    verdictSection(episode),
    patchSection(id, episode),
    timelineSection(episode, list.open),
    promptSection(id, episode),
    list.section,
  ].filter(Boolean);
  const jumps = sections.map((part) =>
    button(part.getAttribute("aria-label"), () => part.scrollIntoView()),
  );
  const title = `${id.task} · ${attempt}`;
  const toTurn = (next) => next.has("turn") && list.open(Number(next.get("turn")));
  return {
    title,
    crumbs: [[id.run, listLink(id.run)], [title]],
    node: [
      episodeHead(id, episode, runs, episodes),
      el("nav.jumps", { "aria-label": "Sections" }, jumps),
      sections,
    ],
    shown: () => toTurn(params),
    update: toTurn,
    close: list.close,
  };
}

/** The task, the outcome, and links to other episodes. */
function episodeHead(id, episode, runs, rows) {
  const index = rows.findIndex(({ task, attempt }) => task === id.task && attempt === id.attempt);
  const neighbour = (row, label, key) => {
    if (!row) return null;
    const href = episodeLink({ ...row, run: id.run });
    return el("a", { href, "data-shortcut": key }, label);
  };
  const attempts = rows.filter(({ task }) => task === id.task).map(({ attempt }) => attempt);
  const others = attempts.filter((other) => other !== id.attempt).sort((a, b) => a - b);
  const links = others.map((other) => {
    const href = episodeLink({ ...id, attempt: other });
    return [" · ", el("a", { href, "aria-label": `attempt ${other}` }, other)];
  });
  const comparable = [
    ...others.map((attempt) => [pairLink(id, { ...id, attempt }), `attempt ${attempt}`]),
    ...runs.map((run) => [pairLink(id, { ...id, run: run.id }), runLabel(run)]),
  ].filter(([link]) => link !== pairLink(id, id));
  const compare = select("Compare with", [["", "…"], ...comparable], "", (link) => {
    location.hash = link;
  });
  const usage = Object.entries(episode.usage).filter(([, value]) => isNumber(value));
  return [
    el(
      "div.row",
      el("h1", id.task),
      badge(episode.outcome),
      el(
        "span.row.actions",
        neighbour(rows[index - 1], "‹ Previous", "["),
        neighbour(rows[index + 1], "Next ›", "]"),
        comparable.length > 0 ? compare : null,
      ),
    ),
    facts([
      ["attempt", [id.attempt, links]],
      ["agent", episode.agent],
      ["model", episode.model],
      ["toolset", episode.toolset],
      ["ended by", words(episode.stop_reason)],
      ["time", duration(episode.duration_s)],
      ...usage.map(([name, value]) => [words(name), number(value, 2)]),
      ["cost", isNumber(episode.cost) ? cost(episode.cost) : null],
      ["seed", episode.seed],
      ["prefix breaks", episode.num_prefix_breaks],
      ["started", time(episode.started_at)],
    ]),
  ];
}

/** A section with a heading and, next to the heading, `extra`. */
function section(name, extra, ...children) {
  return el(
    "section.stack",
    { "aria-label": name },
    el("div.row", el("h2", name), extra),
    children,
  );
}

/** The reason why a test did not pass, by the status of the test. */
const REASONS = {
  failed: "it ran and did not pass",
  error: "its set-up or tear-down failed, or it was reported more than once",
  skipped: "it was skipped",
  xfailed: "it was expected to fail",
  missing: "no result was reported",
  undecided: "the grade does not depend on it",
};

/** The grade with every test that did not pass, or the error. */
function verdictSection({ error, error_class: errorClass, grade }) {
  const label = errorClass ? `${words(errorClass)} error` : "Error";
  const problem = error.text ? notice("error", el("b", label), textBlock(error)) : null;
  if (!grade) return section("Verdict", null, problem, el("small", "The episode was not graded."));
  const isPassed = (test) => test.status === "passed";
  const tests = ["fail_to_pass", "pass_to_pass"].flatMap((list) =>
    Object.entries(grade[list]).map(([test, status]) => ({ list, test, status })),
  );
  const reason = ({ status: name }) =>
    grade.reason === "tampered" ? "the test run was tampered with" : (REASONS[name] ?? "");
  const [passed, failed] = [tests.filter(isPassed), tests.filter((test) => !isPassed(test))];
  const count = (list) => {
    const size = (group) => group.filter((test) => test.list === list).length;
    const total = size(tests);
    return [words(list), total > 0 ? `${size(passed)} of ${total} passed` : "not run"];
  };
  const columns = [
    ["Status", (test) => status(isPassed(test), test.status)],
    ["Test", (test) => el("code", test.test), "heading"],
    ["List", (test) => words(test.list), "wide"],
    ["Reason", reason],
  ];
  return section(
    "Verdict",
    status(grade.resolved, words(grade.reason)),
    problem,
    grade.detail ? el("p.untrusted", grade.detail) : null,
    facts([
      count("fail_to_pass"),
      count("pass_to_pass"),
      ["challenge of the fail-to-pass tests", grade.challenge],
      ["grading", duration(grade.duration_s)],
      ["files not graded", grade.dropped_paths.join(", ")],
    ]),
    failed.length > 0 ? table("Failed tests", columns, failed, null, SHOWN_TESTS) : null,
    passed.length > 0
      ? folded(`Passed tests (${passed.length})`, () => table("Passed tests", columns, passed))
      : null,
  );
}

/** The graded patch, or a message that it is empty. */
export function patchBlock(id, { patch }) {
  if (patch.total === 0) return el("small", "The patch is empty.");
  return episodeText(id, "patch", patch, "whole");
}

/** The patch and, folded, the gold patch. */
function patchSection(id, episode) {
  const { total } = episode.patch;
  const name = `Patch of the episode, ${number(total)} characters`;
  const patch = () => patchBlock(id, episode);
  const goldText = { text: episode.gold, total: [...episode.gold].length };
  const gold = folded("Gold patch", () => textBlock(goldText, null, "whole"));
  gold.firstElementChild.dataset.shortcut = "g";
  const sides = el(
    "div.patches",
    total > 0 ? folded(name, patch, total < LONG_PATCH) : patch(),
    episode.gold ? gold : null,
  );
  return section("Patch", null, sides);
}

/** Charts of tokens, time and rewards over the turns. */
function timelineSection(episode, open) {
  const { turns } = episode;
  const limits = episode.limits ?? {};
  // The prompt of a turn contains all earlier turns, so tokens are not summed.
  const tokens = turns.map(({ model: m }) => (m?.prompt_tokens ?? 0) + (m?.completion_tokens ?? 0));
  const seconds = cumulativeSums(turns.map((turn) => turn.duration_s));
  const rewards = cumulativeSums(turns.map((turn) => turn.reward));
  const charts = [
    ["Tokens of the chat", tokens, limits.max_tokens, (value) => number(value)],
    ["Time", seconds, limits.max_seconds, duration],
    ["Reward", rewards, null, (value) => number(value, 3)],
  ].filter(([, values]) => values.some((value) => value !== 0));
  if (charts.length === 0) return null;
  const limit = isNumber(limits.max_turns) ? ` of ${number(limits.max_turns)}` : "";
  const figures = charts.map((chart) => lineChart(...chart, open));
  const count = el("small", `${number(turns.length)}${limit} turns`);
  return section("Timeline", count, el("div.columns", figures));
}

/** The messages before the first action, folded. */
function promptSection(id, { prompt }) {
  if (prompt.length === 0) return null;
  const messages = prompt.slice(0, MAX_PARTS).map(({ role, content }, i) => {
    const summary = [role, el("small", ` ${number(content.total)} characters`)];
    return folded(summary, () => episodeText(id, `prompt/${i}`, content, "prose whole"));
  });
  return section("Prompt", null, messages);
}

/** The list of an episode's turns; it adds turns when the user scrolls to its end. */
function turnList(id, { turns }, firstTurn) {
  const [items, footer] = [el("div"), el("div")];
  const extend = (count = TURNS) => {
    const from = items.childElementCount;
    const next = turns.slice(from, from + count);
    items.append(...next.map((turn, i) => turnView(id, turn, from + i)));
    const more = button("Show more turns", () => extend(), { "data-more": true });
    redraw(footer, items.childElementCount < turns.length ? more : null);
  };
  const open = (turn) => {
    if (!(turn >= 0 && turn < turns.length)) return;
    extend(Math.max(0, turn + 1 - items.childElementCount));
    const view = items.children[turn];
    view.focus({ preventScroll: true });
    view.scrollIntoView();
  };
  const observer = new IntersectionObserver(([entry]) => {
    if (entry.isIntersecting) footer.querySelector("[data-more]")?.click();
  });
  observer.observe(footer);
  extend(Math.max(TURNS, firstTurn + 1 || 0));
  items.addEventListener("focusin", (event) => {
    const { turn } = event.target.closest("[data-turn]").dataset;
    history.replaceState(history.state, "", episodeLink(id, { turn }));
  });
  const none = turns.length === 0 ? el("small", "The episode has no action.") : null;
  return {
    section: section("Turns", el("small", number(turns.length)), none, items, footer),
    open,
    close: () => observer.disconnect(),
  };
}

/** One line of text with the time, tokens, cost and reward of a turn. */
function turnNotes({ model, reward, reward_parts: parts, duration_s: seconds }) {
  const terms = Object.entries(parts).map(([name, value]) => `${words(name)} ${number(value, 4)}`);
  const end = model?.finish_reason ?? "";
  const notes = [
    duration(seconds),
    isNumber(model?.completion_tokens) ? `${number(model.completion_tokens)} reply tokens` : "",
    ["", "stop", "tool_calls"].includes(end) ? "" : `reply stopped by ${end.slice(0, 40)}`,
    isNumber(model?.prompt_tokens) ? `${number(model.prompt_tokens)} prompt tokens` : "",
    model?.cached_tokens ? `${number(model.cached_tokens)} cached` : "",
    isNumber(model?.cost) ? `cost ${cost(model.cost)}` : "",
    model?.num_retries ? `${model.num_retries} retries` : "",
    reward !== 0 ? `reward ${number(reward, 4)}` : "",
    terms.length > 1 ? terms.join(", ") : "",
  ];
  return notes.filter(Boolean).join(" · ");
}

/** One turn: thought, calls with outputs, observation. */
export function turnView(id, turn, index) {
  const path = `turns/${index}`;
  const text = (name, kind) =>
    turn[name].text ? episodeText(id, `${path}/${name}`, turn[name], kind) : null;
  const isPlain = turn.calls.length === 0 && turn.thought.text === "";
  const calls = turn.calls.slice(0, MAX_PARTS);
  const name = `Turn ${index}`;
  const link = el("a", { href: episodeLink(id, { turn: index }) }, name);
  return el(
    "article.turn.stack",
    { "data-item": true, "data-turn": index, tabindex: -1, "aria-label": name },
    el("header.row", el("h3", link), el("small", turnNotes(turn))),
    turn.opening.text ? folded("New prompt", () => text("opening", "prose whole")) : null,
    text("thought", "prose"),
    isPlain ? text("action", "prose") : null,
    calls.map((call, i) => callView(id, `${path}/calls/${i}`, call)),
    calls.length < turn.calls.length ? el("small", `${turn.calls.length} calls in total`) : null,
    text("observation", "output"),
    isPlain ? null : folded("Raw action", () => text("action")),
  );
}

/** One tool call: name, arguments, output. */
function callView(id, path, call) {
  const isOk = call.ok === true && !call.error;
  const word = call.error ? "not run" : isOk ? "ok" : call.output ? "failed" : "no result";
  const isKnown = call.error || call.ok !== null || !call.output; // harnesses report no outcome
  const time = isNumber(call.duration_s) ? el("small", duration(call.duration_s)) : null;
  return el(
    "div.call.stack",
    el("div.row", el("b", call.name || "(no name)"), isKnown ? status(isOk, word) : null, time),
    argumentBlocks(id, `${path}/arguments`, call.arguments),
    call.error ? notice("warning", call.error) : null,
    call.output?.text ? episodeText(id, `${path}/output`, call.output, "output") : null,
  );
}

/** Names of arguments: commands, and pairs of a replaced text and its replacement. */
const COMMANDS = ["cmd", "command"];
const REPLACEMENTS = { search: "replace", old_str: "new_str", old_string: "new_string" };

/** Arguments: commands with a shell prompt, short values in one line, replacements as diffs. */
function argumentBlocks(id, path, values) {
  const isSmall = (name) => values[name]?.total < 10_000;
  const pair = Object.entries(REPLACEMENTS).find((names) => names.every(isSmall));
  const single = Object.entries(values).filter(([name]) => !pair?.includes(name));
  const isCommand = ([name]) => COMMANDS.includes(name);
  const isShort = ([, { text, total }]) => total <= 100 && !text.includes("\n");
  const block = ([name, text], kind) => episodeText(id, `${path}/${name}`, text, kind);
  const others = single.slice(0, MAX_PARTS).filter((entry) => !isCommand(entry));
  const short = others.filter(isShort).map(([name, { text }]) => [name, el("code", text)]);
  return [
    single.filter(isCommand).map((entry) => block(entry, "command")),
    short.length > 0 ? facts(short) : null,
    others.filter((entry) => !isShort(entry)).map((entry) => [el("small", entry[0]), block(entry)]),
    pair ? replacementBlock(...pair.map((name) => values[name].text)) : null,
  ];
}
