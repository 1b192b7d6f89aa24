/** One episode, turn by turn, with its verdict, its patch and what it used. */

import { lineChart } from "./charts.js";
import { episodeLink, load, loadRun, pairLink } from "./data.js";
import { badge, button, el, facts, failure, folded, notice, redraw, status, table } from "./dom.js";
import { listLink } from "./episodes.js";
import { cost, duration, isNumber, number, time, words } from "./format.js";
import { diffSize, replacementBlock, textBlock } from "./text.js";

const TURNS = 50; // loaded at once
const SHOWN_TESTS = 50; // before a button shows the others
const LONG_PATCH = 4_000; // characters from which a patch stays folded

/** The data of an episode; `place` is {run, task, attempt}. */
export function loadEpisode({ run, task, attempt }) {
  return loadRun(run, "episode", { task, attempt });
}

/** The turns of an episode from the number `start` on. */
export async function loadTurns({ run, task, attempt }, start) {
  return (await loadRun(run, "turns", { task, attempt, start, count: TURNS })).turns;
}

/** A block for a text of an episode; `path` is its name in the data. */
function episodeText({ run, task, attempt }, path, text, kind = "") {
  const more = (offset) => loadRun(run, "text", { task, attempt, path, offset });
  return textBlock(text, more, kind);
}

/** The page of one episode. */
export async function episodePage({ segments, params }) {
  const attempt = Number(params.get("attempt") ?? 0);
  const place = { run: segments[1], task: params.get("task") ?? "", attempt };
  const [episode, { runs }] = await Promise.all([loadEpisode(place), load("api/runs")]);
  const list = turnList(place, episode, Number(params.get("turn") ?? 0));
  const sections = [
    verdictSection(episode),
    patchSection(place, episode),
    courseSection(episode, list.open),
    promptSection(place, episode),
    list.section,
  ].filter(Boolean);
  const jumps = sections.map((section) => {
    const jump = () => section.scrollIntoView({ block: "start" });
    return button(section.getAttribute("aria-label"), jump, { class: "quiet" });
  });
  const title = `${place.task} · ${attempt}`;
  const toTurn = (next) => next.has("turn") && list.open(Number(next.get("turn")));
  return {
    title,
    crumbs: [[place.run, listLink(place.run)], [title]],
    node: [
      episodeHead(place, episode, runs),
      el("nav.jumps", { "aria-label": "Sections" }, jumps),
      el("div.with-outline", list.outline, el("div", sections)),
    ],
    shown: () => toTurn(params),
    update: toTurn,
    close: list.close,
  };
}

/** What was played, what came of it, and the way to other episodes. */
function episodeHead(place, episode, runs) {
  const { attempts, next, previous } = episode.neighbours;
  const others = attempts.filter((other) => other !== place.attempt);
  const neighbour = (to, label, key) => {
    if (!to) return null;
    const href = episodeLink({ run: place.run, task: to[0], attempt: to[1] });
    return el("a", { href, "data-shortcut": key }, label);
  };
  const comparable = [
    ...others.map((attempt) => [`attempt ${attempt}`, { ...place, attempt }]),
    ...runs
      .filter((run) => run.id !== place.run)
      .map((run) => [run.name, { ...place, run: run.id }]),
  ];
  const compare = el(
    "select",
    {
      "aria-label": "Compare with",
      onchange: (event) => {
        location.hash = event.target.value;
      },
    },
    el("option", "Compare with …"),
    comparable.map(([label, there]) => el("option", { value: pairLink(place, there) }, label)),
  );
  const links = others.map((other) => {
    const href = episodeLink({ ...place, attempt: other });
    return [" ", el("a", { href, "aria-label": `attempt ${other}` }, other)];
  });
  const used = Object.entries(episode.usage).filter(([, value]) => isNumber(value));
  return [
    el(
      "div.title",
      el("h1", place.task),
      badge(episode.outcome),
      el(
        "span.actions",
        neighbour(previous, "‹ Previous", "["),
        neighbour(next, "Next ›", "]"),
        comparable.length > 0 ? compare : null,
      ),
    ),
    facts([
      ["attempt", [place.attempt, links.length > 0 ? [" · also", links] : null]],
      ["agent", episode.agent],
      ["model", episode.model],
      ["toolset", episode.toolset],
      ["ended by", words(episode.stop_reason)],
      ["time", duration(episode.duration_s)],
      ...used.map(([name, value]) => [words(name), number(value, 2)]),
      ["cost", isNumber(episode.cost) ? cost(episode.cost) : null],
      ["seed", episode.seed],
      ["prefix breaks", episode.num_prefix_breaks],
      ["started", time(episode.started_at)],
    ]),
  ];
}

/** A section with its heading; `extra` stands beside the heading. */
function section(name, extra, ...children) {
  return el("section", { "aria-label": name }, el("div.title", el("h2", name), extra), children);
}

/** The grade with every test that did not count, or the error that took its place. */
function verdictSection({ error, error_class: errorClass, grade }) {
  const problem = error.text
    ? notice("error", el("b", `${words(errorClass)} error`), textBlock(error))
    : null;
  if (!grade) return section("Verdict", null, problem, el("p.note", "There is no grade."));
  const count = (list) => {
    const tests = grade.tests.filter((test) => test.list === list);
    const passed = tests.filter((test) => test.status === "passed").length;
    return [words(list), tests.length > 0 ? `${passed} of ${tests.length} passed` : "not run"];
  };
  const result = [
    count("fail_to_pass"),
    count("pass_to_pass"),
    ["grading", duration(grade.duration_s)],
    ["files not graded", grade.dropped_paths.join(", ")],
  ];
  return section(
    "Verdict",
    status(grade.resolved, words(grade.reason)),
    problem,
    grade.detail ? el("p.untrusted", grade.detail) : null,
    facts(result),
    testTable(grade.tests),
  );
}

/** Tests, first those that did not pass; the others come with a button. */
function testTable(tests) {
  const isPassed = (test) => test.status === "passed";
  const failed = tests.filter((test) => !isPassed(test));
  const sorted = [...failed, ...tests.filter(isPassed)];
  const columns = [
    ["Status", (test) => status(isPassed(test), test.status)],
    ["Test", (test) => el("code", test.test), "heading"],
    ["List", (test) => words(test.list), "wide"],
    ["Challenge", (test) => test.level, "wide"],
    ["Why it did not count", (test) => test.why],
  ];
  const box = el("div");
  const show = (count) => {
    const rest = sorted.length - count;
    const label = `Show ${number(rest)} more ${rest > 1 ? "tests" : "test"}`;
    redraw(
      box,
      count > 0 ? table("Tests", columns, sorted.slice(0, count)) : null,
      rest > 0 ? button(label, () => show(Math.min(count + 500, sorted.length))) : null,
    );
  };
  show(Math.min(failed.length, SHOWN_TESTS));
  return box;
}

/** The change that was graded, or a word that there is none. */
export function patchBlock(place, { patch }) {
  if (patch.total === 0) return el("p.note", "Nothing was changed.");
  return episodeText(place, "patch", patch, "whole");
}

/** The patch and, when it is asked for, the gold patch beside it. */
function patchSection(place, episode) {
  const { text, total } = episode.patch;
  const size = total > text.length ? `${number(total)} characters` : diffSize(text);
  const patch = () => patchBlock(place, episode);
  const gold = folded("Gold patch", async () => {
    return textBlock((await loadRun(place.run, "gold", { task: place.task })).patch, null, "whole");
  });
  const summary = gold.querySelector("summary");
  summary.dataset.shortcut = "g";
  return section(
    "Patch",
    null,
    el(
      "div.sides",
      total > 0 ? folded(`Patch of the episode, ${size}`, patch, total < LONG_PATCH) : patch(),
      episode.has_gold === false ? null : gold,
    ),
  );
}

/** Tokens, time and rewards over the turns. */
function courseSection({ num_turns: turns, timeline }, open) {
  const { tokens, seconds, rewards, limits } = timeline;
  let sum = 0;
  const summed = rewards.map((reward) => {
    sum += reward;
    return sum;
  });
  const reward = (value) => number(value, 3);
  const charts = [
    ["Tokens", tokens, limits.max_tokens, number],
    ["Time", seconds, limits.max_seconds, duration],
    ["Reward", summed, null, reward],
  ].filter(([, values]) => values.some((value) => value !== 0));
  if (charts.length === 0) return null;
  const allowed = isNumber(limits.max_turns) ? ` of ${number(limits.max_turns)}` : "";
  return section(
    "Course",
    el("small", `${number(turns)}${allowed} turns`),
    el(
      "div.course",
      charts.map(([name, values, limit, write]) =>
        lineChart(name, values, limit, (value) => write(value), open),
      ),
    ),
  );
}

/** The messages before the first action, folded. */
function promptSection(place, { prompt }) {
  if (prompt.length === 0) return null;
  const messages = prompt.map(({ role, content }, i) => {
    const summary = [role, el("small", ` ${number(content.total)} characters`)];
    return folded(summary, () => episodeText(place, `prompt/${i}`, content, "prose whole"));
  });
  return section("Prompt", null, messages);
}

/** The turns of an episode with their outline: a window that grows at both ends. */
function turnList(place, episode, firstTurn) {
  const count = episode.num_turns;
  const [items, links, earlier, later] = [el("div"), el("ol"), el("div"), el("div")];
  let [from, to, loading] = [0, 0, null];
  const add = (turns, before) => {
    const where = before ? "prepend" : "append";
    items[where](...turns.map((turn) => turnView(place, turn)));
    links[where](...turns.map((turn) => outlineEntry(place, turn)));
    if (before) from -= turns.length;
    else to += turns.length;
    const label = (first, end) => `Turns ${first} to ${end - 1}`;
    const [first, end] = [Math.max(from - TURNS, 0), Math.min(to + TURNS, count)];
    redraw(earlier, from > 0 ? button(label(first, from), () => extend(true)) : null);
    const next = { "data-more": true };
    redraw(later, to < count ? button(label(to, end), () => extend(false), next) : null);
  };
  const extend = (before) => {
    if (loading) return loading;
    const start = before ? Math.max(from - TURNS, 0) : to;
    const place_ = before ? earlier : later;
    redraw(place_, el("p.note", "Loading …"));
    loading = loadTurns(place, start)
      .then((turns) => add(before ? turns.slice(0, from - start) : turns, before))
      .catch((error) =>
        redraw(
          place_,
          failure(error, () => extend(before)),
        ),
      )
      .finally(() => {
        loading = null;
      });
    return loading;
  };
  const open = async (turn) => {
    if (!(turn >= 0 && turn < count)) return;
    await loading;
    if (turn < from || turn >= to) {
      items.replaceChildren();
      links.replaceChildren();
      from = turn - (turn % TURNS);
      to = from;
      await extend(false);
    }
    const view = items.querySelector(`[data-turn="${turn}"]`);
    view?.focus({ preventScroll: true });
    view?.scrollIntoView({ block: "start" });
  };
  const observer = new IntersectionObserver(([entry]) => {
    if (entry.isIntersecting && later.querySelector("[data-more]")) extend(false);
  });
  observer.observe(later);
  if (firstTurn < TURNS) add(episode.turns, false);
  items.addEventListener("focusin", (event) => {
    const { turn } = event.target.closest("[data-turn]").dataset;
    history.replaceState(history.state, "", episodeLink(place, { turn }));
  });
  const none = count === 0 ? el("p.note", "No action was taken.") : null;
  return {
    section: section("Turns", el("small", number(count)), none, earlier, items, later),
    outline: el("nav.outline", { "aria-label": "Turns" }, links),
    open,
    close: () => observer.disconnect(),
  };
}

/** The line of a turn in the outline: its calls, and whether one failed. */
function outlineEntry(place, { number: turn, calls, action }) {
  const failed = calls.some((call) => call.ok === false || call.error);
  const [first] = calls;
  const gist = first ? (Object.values(first.arguments)[0]?.text ?? "") : action.text;
  const names = calls.map((call) => call.name || "?").join(", ");
  return el(
    "li",
    el(
      "a",
      { href: episodeLink(place, { turn }) },
      el("span.ordinal", turn),
      el("b", names.slice(0, 60) || "text"),
      failed ? el("span.bad", " ✗") : null,
      ` ${gist.slice(0, 80).replaceAll("\n", " ")}`,
    ),
  );
}

/** Tokens, times, cost and reward of a turn, in one line. */
function turnNotes({ model, reward, reward_parts: parts, duration_s: seconds }) {
  const nonzero = Object.entries(parts).filter(([, value]) => value !== 0);
  const named = nonzero.map(([name, value]) => `${words(name)} ${number(value, 4)}`).join(", ");
  const strange = model && !["", "stop", "tool_calls"].includes(model.finish_reason);
  return [
    duration(seconds),
    isNumber(model?.prompt_tokens) ? `${number(model.prompt_tokens)} prompt tokens` : "",
    isNumber(model?.completion_tokens) ? `${number(model.completion_tokens)} reply tokens` : "",
    model?.cached_tokens ? `${number(model.cached_tokens)} cached` : "",
    model ? `model ${duration(model.duration_s)}` : "",
    isNumber(model?.cost) ? `cost ${cost(model.cost)}` : "",
    model?.num_retries ? `${model.num_retries} retries` : "",
    strange ? `finished by ${words(model.finish_reason)}` : "",
    reward !== 0 ? `reward ${number(reward, 4)}` : "",
    nonzero.length > 1 ? named : "",
  ]
    .filter(Boolean)
    .join(" · ");
}

/** One turn of the episode at `place`: thought, calls with their outputs, observation. */
export function turnView(place, turn) {
  const text = (name, kind) => {
    const shown = turn[name].text !== "";
    return shown ? episodeText(place, `turns/${turn.number}/${name}`, turn[name], kind) : null;
  };
  const isPlain = turn.calls.length === 0 && turn.thought.text === "";
  const name = `Turn ${turn.number}`;
  const link = el("a", { href: episodeLink(place, { turn: turn.number }) }, name);
  const marks = { "data-item": true, "data-turn": turn.number, tabindex: -1, "aria-label": name };
  return el(
    "article.turn",
    marks,
    el("header", el("h3", link), el("span.notes", turnNotes(turn))),
    text("thought", "prose"),
    isPlain ? text("action", "prose") : null,
    turn.calls.map((call, i) => callView(place, `turns/${turn.number}/calls/${i}`, call)),
    text("observation", "output"),
    isPlain ? null : folded("Raw action", () => text("action")),
  );
}

/** One tool call: its name and arguments, then its output. */
function callView(place, path, call) {
  const good = call.ok === true && !call.error;
  const word = call.error ? "not run" : good ? "ok" : call.ok === false ? "failed" : "no result";
  return el(
    "div.call",
    el(
      "div.call-head",
      el("b", call.name || "(no name)"),
      status(good, word),
      isNumber(call.duration_s) ? el("span.notes", duration(call.duration_s)) : null,
    ),
    argumentBlocks(place, `${path}/arguments`, call.arguments),
    call.error ? notice("warning", call.error) : null,
    call.output?.text ? episodeText(place, `${path}/output`, call.output, "output") : null,
  );
}

/** Names of arguments that hold a command, and pairs that replace one text by another. */
const COMMANDS = ["cmd", "command"];
const REPLACEMENTS = [
  ["search", "replace"],
  ["old_str", "new_str"],
  ["old_string", "new_string"],
];

/** Arguments: short ones in one line, commands with a prompt, replacements as differences. */
function argumentBlocks(place, path, given) {
  const pair = REPLACEMENTS.find((names) => names.every((name) => given[name]?.total < 10_000));
  const left = Object.entries(given).filter(([name]) => !pair?.includes(name));
  const isShort = ([name, { text, total }]) =>
    !COMMANDS.includes(name) && total <= 100 && !text.includes("\n");
  const block = ([name, text]) => {
    const isCommand = COMMANDS.includes(name);
    const body = episodeText(place, `${path}/${name}`, text, isCommand ? "command" : "");
    return isCommand ? body : [el("h4", name), body];
  };
  const short = left.filter(isShort).map(([name, { text }]) => [name, el("code", text)]);
  return [
    short.length > 0 ? facts(short) : null,
    left.filter((entry) => !isShort(entry)).map(block),
    pair ? replacementBlock(...pair.map((name) => given[name].text)) : null,
  ];
}
