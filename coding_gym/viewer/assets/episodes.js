/** The page of one run: results, and the table of episodes. */

import { progressBar } from "./charts.js";
import {
  episodeLink,
  FILTERS,
  loadRun,
  loadRuns,
  pageLink,
  runLabel,
  selectEpisodes,
} from "./data.js";
import { button, el, facts, failure, folded, notice, redraw, select, table } from "./dom.js";
import { badge, cost, duration, estimate, number, percent, time, words } from "./format.js";
import { errorText, progressText } from "./runs.js";

const PAGE_ROWS = 100;
const RELOAD_MS = 2_000; // minimum time between two reads of the table while the run continues
const TYPING_MS = 250; // delay of a search after the last key

/** Parameters of the address that filter the episodes. */
const ALL_FILTERS = ["task", "text", ...FILTERS];

/** The last parameters of each run's page, so that links back to the page keep its filters. */
const lastParams = new Map();

/** The last address of a run's page. */
export function listLink(run) {
  return pageLink(["run", run], lastParams.get(run));
}

/** The page of one run. */
export async function episodesPage(route) {
  const id = route.segments[1];
  let params = Object.fromEntries(route.params);
  let run = (await loadRuns()).find((other) => other.id === id);
  if (!run) throw new Error(`The viewer has no run ${id}; open the list of runs.`);
  let { episodes: rows } = await loadRun(id, "episodes");
  let [request, timer] = [0, 0];
  const [head, results] = [el("div.stack"), el("div.stack")];
  const change = (changes, typing = false) => {
    params = { ...params, page: "", ...changes };
    const address = pageLink(["run", id], params);
    if (typing) location.replace(address);
    else location.hash = address;
  };
  const filters = filterForm(change);
  const show = async () => {
    const current = ++request;
    lastParams.set(id, params);
    try {
      const selected = await selectEpisodes(id, rows, params);
      if (current !== request) return;
      filters.show(params, rows);
      const sort = (name) => change(nextOrder(name, params));
      redraw(results, episodesView(run, selected, params, sort));
    } catch (error) {
      if (current === request) redraw(results, failure(error, show));
    }
  };
  const reload = async () => {
    rows = (await loadRun(id, "episodes").catch(() => ({ episodes: rows }))).episodes;
    timer = 0;
    show();
  };
  redraw(head, runHead(run));
  await show();
  return {
    title: id,
    crumbs: [[id]],
    node: [head, filters.form, results],
    update: (next) => {
      params = Object.fromEntries(next);
      show();
    },
    live: (runs) => {
      const next = runs.find((other) => other.id === id);
      if (!next || JSON.stringify(next) === JSON.stringify(run)) return;
      run = next;
      redraw(head, runHead(run));
      timer ||= setTimeout(reload, RELOAD_MS);
    },
    close: () => clearTimeout(timer),
  };
}

/** Name, progress and results of a run. */
function runHead(run) {
  const link = (page, params) =>
    el("a", { href: pageLink([page], params), "data-key": page }, page);
  const note = `${percent(run.indexed)} of the records are read; the search covers only these.`;
  return [
    el(
      "div.row",
      el("h1", runLabel(run)),
      run.running ? el("b.good", "◌ running") : null,
      el("span.row.actions", link("compare", { a: run.id })),
    ),
    facts([
      ["agent", run.agent],
      ["model", run.model],
      ["toolset", run.toolset],
      ["tasks", `${run.tasks}, ${number(run.num_tasks)} × ${number(run.attempts)}`],
      ["started", time(run.created_at)],
    ]),
    el("div.field", progressBar(run), progressText(run)),
    facts(
      [
        ["Resolved", estimate(run.resolved, percent)],
        ["Tokens", number(run.tokens)],
        ["Cost", cost(run.cost)],
        ["Errors", errorText(run)],
      ],
      "tiles",
    ),
    run.caveats?.map((caveat) => notice("warning", caveat)),
    run.indexed < 1 ? notice("info", note) : null,
  ];
}

/** The filter fields above the table; `show` sets the fields to `params`. */
function filterForm(change) {
  let timer = 0;
  const input = (name, attributes) => {
    const onInput = ({ target }) => {
      clearTimeout(timer);
      const search = () => form.isConnected && change({ [name]: target.value }, true);
      timer = setTimeout(search, TYPING_MS);
    };
    return el("input", { type: "search", name, oninput: onInput, ...attributes });
  };
  const task = input("task", { placeholder: "part of the task id", "data-shortcut": "/" });
  const text = input("text", { placeholder: "consecutive words" });
  const choices = el("div.row");
  const form = el(
    "form.row",
    { role: "search", "aria-label": "Filters", onsubmit: (event) => event.preventDefault() },
    el("label.field", el("small", "Task"), task),
    el("label.field", el("small", "Text in any turn"), text),
    choices,
  );
  const show = (params, rows) => {
    for (const field of [task, text]) {
      if (document.activeElement !== field) field.value = params[field.name] ?? "";
    }
    const choice = (name, label) => {
      const values = rows.map((row) => row[name]);
      const names = [...new Set([...values, params[name]])].filter(Boolean).sort();
      const options = [["", "any"], ...names.map((value) => [value, words(value)])];
      const onChange = (value) => change({ [name]: value });
      return names.length > 0 ? select(label, options, params[name] ?? "", onChange) : null;
    };
    const clear = () => change(Object.fromEntries(ALL_FILTERS.map((name) => [name, ""])));
    redraw(
      choices,
      choice("outcome", "Outcome"),
      choice("repo", "Repository"),
      choice("difficulty", "Difficulty"),
      choice("stop_reason", "Ended by"),
      choice("error_class", "Error class"),
      isFiltered(params) ? button("Clear", clear, { "data-key": "clear" }) : null,
    );
  };
  return { form, show };
}

function isFiltered(params) {
  return ALL_FILTERS.some((name) => params[name]);
}

/** The selected episodes, their number, and links to further pages. */
function episodesView(run, rows, params, sort) {
  const total = rows.length;
  if (total === 0) {
    return notice("info", isFiltered(params) ? "No episode matches." : "No episode has ended yet.");
  }
  const page = Math.max(Number.parseInt(params.page, 10) || 1, 1);
  const [offset, pages] = [(page - 1) * PAGE_ROWS, Math.ceil(total / PAGE_ROWS)];
  const episodes = rows.slice(offset, offset + PAGE_ROWS);
  const stepLink = (label, to, key) => {
    const href = pageLink(["run", run.id], { ...params, page: to });
    return el("a", { href, "data-shortcut": key, "data-key": key }, label);
  };
  const range = `${number(offset + 1)} to ${number(offset + episodes.length)} of `;
  const count = `${pages > 1 ? range : ""}${number(total)} ${total === 1 ? "episode" : "episodes"}`;
  return [
    el(
      "nav.row",
      { "aria-label": "Pages" },
      el("span", { role: "status" }, episodes.length > 0 ? count : "This page does not exist."),
      page > 1 ? stepLink("‹ Previous", Math.min(page - 1, pages), "[") : null,
      page < pages ? stepLink("Next ›", page + 1, "]") : null,
    ),
    table(`Episodes of ${run.name}`, episodeColumns(run.id), episodes, { ...params, set: sort }),
    folded("Settings", () => facts(Object.entries(run.settings))),
  ];
}

/** The next sort order of a column: ascending, descending, then the order of start times. */
function nextOrder(name, params) {
  if (params.sort !== name) return { sort: name, order: "asc" };
  return params.order === "desc" ? { sort: "", order: "" } : { sort: name, order: "desc" };
}

function episodeColumns(run) {
  const task = (row) => {
    const href = episodeLink({ ...row, run });
    return el("a", { href, "data-item": true, "data-key": href }, row.task);
  };
  const read = (cell) => (row) => (row.indexed ? cell(row) : "…");
  const reason = (row) => words(row.outcome === "error" ? row.error_class : row.reason);
  return [
    ["Task", task, "heading", "task"],
    ["Attempt", (row) => row.attempt, "number", "attempt"],
    ["Outcome", (row) => badge(row.outcome), "", "outcome"],
    ["Reason", read(reason), "", "reason"],
    ["Ended by", read((row) => words(row.stop_reason)), "wide"],
    ["Turns", read((row) => number(row.turns)), "number", "turns"],
    ["Tokens", (row) => number(row.tokens), "number", "tokens"],
    ["Cost", (row) => cost(row.cost), "number wide", "cost"],
    ["Time", read((row) => duration(row.duration_s)), "number", "duration_s"],
    ["Reward", read((row) => number(row.reward, 3)), "number", "reward"],
    ["Repository", (row) => row.repo, "wide"],
    ["Difficulty", (row) => row.difficulty, "wide"],
    ["Started", read((row) => time(row.started_at)), "wide", "started_at"],
  ];
}
