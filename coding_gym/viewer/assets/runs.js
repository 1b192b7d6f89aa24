/** The table of runs, which is updated while runs continue. */

import { intervalBar, progressBar } from "./charts.js";
import { loadRuns, pageLink, runLabel } from "./data.js";
import { button, el, notice, redraw, table } from "./dom.js";
import { cost, duration, estimate, number, percent, time } from "./format.js";

/** Progress of a run in words: attempts, speed and time left. */
export function progressText(run) {
  const counts = `${number(run.done)} of ${number(run.planned)}`;
  if (!run.running) return counts;
  const speed = run.rate_per_min ? ` · ${number(run.rate_per_min, 1)} per min` : "";
  const left = run.seconds_left === null ? "" : ` · ${duration(run.seconds_left)} left`;
  return counts + speed + left;
}

/** The errors of a run, by class. */
export function errorText(run) {
  const classes = Object.entries(run.error_classes).map(([name, count]) => `${count} ${name}`);
  return run.num_errors > 0 ? classes.join(", ") : "none";
}

/** The page of all runs. */
export async function runsPage() {
  let runs = await loadRuns();
  const chosen = new Set();
  const results = el("div");
  const search = el("input", { type: "search", "data-shortcut": "/", oninput: () => draw() });
  const compare = button("Compare two", () => {
    const [b, a] = runs.map((run) => run.id).filter((id) => chosen.has(id)); // a is the older
    location.hash = pageLink(["compare"], { a, b });
  });
  const draw = () => {
    const text = (run) => `${runLabel(run)} ${run.agent} ${run.model} ${run.toolset} ${run.tasks}`;
    const wanted = search.value.toLowerCase();
    const shown = runs.filter((run) => text(run).toLowerCase().includes(wanted));
    compare.disabled = chosen.size !== 2;
    redraw(results, shown.length > 0 ? runsTable(shown, chosen, draw) : noRuns(runs));
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
  return notice("info", el("p", "There are no runs yet. Each appears when it starts:"), command);
}

function runsTable(runs, chosen, changed) {
  const choose = (run) => {
    const onchange = (event) => {
      chosen[event.target.checked ? "add" : "delete"](run.id);
      changed();
    };
    const name = { "aria-label": `Choose ${run.id}`, "data-key": `choose ${run.id}` };
    return el("input", { type: "checkbox", checked: chosen.has(run.id), onchange, ...name });
  };
  const name = ({ id, name, running, created_at: created }) => [
    el("a", { href: pageLink(["run", id]), "data-item": true, "data-key": id }, id),
    name === id ? null : el("small", name),
    el("small", time(created), running ? el("b.good", " ◌ running") : null),
  ];
  const size = (run) => el("small", `${number(run.num_tasks)} × ${number(run.attempts)}`);
  const resolved = (run) => [intervalBar(run.resolved, 1), estimate(run.resolved, percent)];
  const columns = [
    [el("span.hidden", "Choose"), choose],
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
