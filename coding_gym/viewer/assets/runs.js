/** The page of all runs; its table updates while runs continue. */

import { intervalBar, progressBar } from "./charts.js";
import { loadRuns, pageLink, runLabel } from "./data.js";
import { el, notice, redraw, table } from "./dom.js";
import { cost, estimate, number, percent, time } from "./format.js";

/** The progress of a run as text. */
export function progressText(run) {
  return `${number(run.done)} of ${number(run.planned)}`;
}

/** The number of errors of a run by class, as text. */
export function errorText(run) {
  const classes = Object.entries(run.error_classes).map(([name, count]) => `${count} ${name}`);
  return run.num_errors > 0 ? classes.join(", ") : "none";
}

/** The page of all runs. */
export async function runsPage() {
  let runs = await loadRuns();
  const results = el("div");
  const search = el("input", { type: "search", "data-shortcut": "/", oninput: () => draw() });
  const compare = el("a", { href: pageLink(["compare"]) }, "Compare two runs");
  const draw = () => {
    const text = (run) => `${runLabel(run)} ${run.agent} ${run.model} ${run.toolset} ${run.tasks}`;
    const query = search.value.toLowerCase();
    const matches = runs.filter((run) => text(run).toLowerCase().includes(query));
    redraw(results, matches.length > 0 ? runsTable(matches) : noRuns(runs));
  };
  draw();
  const field = el("label.field", el("small", "Search"), search);
  return {
    title: "Runs",
    crumbs: [],
    node: [el("h1", "Runs"), el("div.row", field, compare), results],
    live: (next) => {
      runs = next;
      draw();
    },
  };
}

function noRuns(runs) {
  if (runs.length > 0) return notice("info", "No run matches the search.");
  const command = el("code", "coding-gym eval --agent template-repair --out runs/first");
  return notice("info", el("p", "There are no runs yet. To start a run:"), command);
}

function runsTable(runs) {
  const name = ({ id, name, running, created_at: created }) => [
    el("a", { href: pageLink(["run", id]), "data-item": true, "data-key": id }, id),
    name === id ? null : el("small", name),
    el("small", time(created), running ? el("b.good", " ◌ running") : null),
  ];
  const size = (run) => el("small", `${number(run.num_tasks)} × ${number(run.attempts)}`);
  const resolved = (run) => [intervalBar(run.resolved, 1), estimate(run.resolved, percent)];
  const columns = [
    ["Run", name, "heading"],
    ["Agent", (run) => [run.agent, el("small", run.model)], "wide"],
    ["Toolset", (run) => run.toolset, "wide"],
    ["Tasks", (run) => [run.tasks, size(run)], "wide"],
    ["Resolved", resolved, "measure"],
    ["Progress", (run) => [progressBar(run), progressText(run)], "measure"],
    ["Errors", errorText, "wide"],
    ["Tokens", (run) => number(run.tokens), "number wide"],
    ["Cost", (run) => cost(run.cost), "number wide"],
  ];
  return table("Runs", columns, runs);
}
