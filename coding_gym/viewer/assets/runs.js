/** The runs: a table that grows while they go on, and plots of several of them. */

import { barChart, intervalBar, progressBar } from "./charts.js";
import { load, pageLink } from "./data.js";
import { button, el, notice, redraw, table } from "./dom.js";
import { cost, duration, estimate, number, percent, time } from "./format.js";

const PLOTTED = 12; // runs in the plots when none are named

/** Progress of a run in words: attempts, speed and time left. */
export function progressText(run) {
  const counts = `${number(run.done + run.num_errors)} of ${number(run.planned)}`;
  if (!run.running) return counts;
  const speed = run.rate_per_min ? ` · ${number(run.rate_per_min, 1)} per min` : "";
  const left = run.eta_s === null ? "" : ` · ${duration(run.eta_s)} left`;
  return `${counts}${speed}${left}`;
}

/** The errors of a run, by class. */
export function errorText(run) {
  const classes = Object.entries(run.error_classes).map(([name, count]) => `${name} ${count}`);
  return run.num_errors > 0 ? classes.join(", ") : "none";
}

/** The page of all runs. */
export async function runsPage(route) {
  const runs = new Map((await load("api/runs")).runs.map((run) => [run.id, run]));
  const chosen = new Set();
  const results = el("div");
  const draw = () => {
    const wanted = search.value.toLowerCase();
    const text = (run) => `${run.name} ${run.agent} ${run.model} ${run.toolset} ${run.tasks}`;
    const shown = [...runs.values()].filter((run) => text(run).toLowerCase().includes(wanted));
    compare.disabled = chosen.size !== 2;
    redraw(results, shown.length > 0 ? runsTable(shown, chosen, draw) : noRuns(runs.size > 0));
  };
  const search = el("input", {
    type: "search",
    value: route.params.get("q") ?? "",
    "data-shortcut": "/",
    oninput: () => {
      history.replaceState(history.state, "", pageLink([], { q: search.value }));
      draw();
    },
  });
  const compare = button("Compare two", () => {
    const [b, a] = [...runs.keys()].filter((id) => chosen.has(id)); // the older one is a
    location.hash = pageLink(["compare"], { a, b });
  });
  const plots = button("Plots", () => {
    location.hash = pageLink(["plots"], { runs: [...chosen].join(",") });
  });
  draw();
  const field = el("label.field.grow", el("span", "Search"), search);
  return {
    title: "Runs",
    crumbs: [],
    node: [el("h1", "Runs"), el("div.toolbar", field, compare, plots), results],
    live: (run) => {
      const others = [...runs].filter(([id]) => id !== run.id);
      const isNew = !runs.has(run.id);
      runs.set(run.id, run);
      if (isNew) for (const [id] of others) runs.delete(id);
      if (isNew) for (const [id, other] of others) runs.set(id, other);
      draw();
    },
  };
}

function noRuns(hasOthers) {
  if (hasOthers) return notice("info", "No run matches the search.");
  const command = el("code", "coding-gym eval --agent template-repair --out runs/first");
  return notice("info", el("p", "There are no runs yet. They appear while they go on:"), command);
}

function runsTable(runs, chosen, changed) {
  const choose = (run) => {
    const onchange = (event) => {
      if (event.target.checked) chosen.add(run.id);
      else chosen.delete(run.id);
      changed();
    };
    const name = { "aria-label": `Choose ${run.name}`, "data-key": `choose ${run.id}` };
    return el("input", { type: "checkbox", checked: chosen.has(run.id), onchange, ...name });
  };
  const name = (run) => [
    el("a", { href: pageLink(["run", run.id]), "data-item": true, "data-key": run.id }, run.name),
    run.running ? el("span.running", "running") : null,
    el("div.sub", time(run.created_at)),
  ];
  const tasks = (run) => [
    run.tasks,
    el("div.sub", `${number(run.num_tasks)} × ${number(run.attempts)}`),
  ];
  const resolved = (run) => [
    intervalBar(run.estimates.resolved, 1),
    el("div.sub", estimate(run.estimates.resolved, percent)),
  ];
  const progress = (run) => [progressBar(run), el("div.sub", progressText(run))];
  return table(
    "Runs",
    [
      [el("span.hidden", "Choose"), choose],
      ["Run", name, "heading"],
      ["Agent", (run) => [run.agent, el("div.sub", run.model)], "wide"],
      ["Toolset", (run) => run.toolset, "wide"],
      ["Tasks", tasks, "wide"],
      ["Resolved", resolved, "measure"],
      ["Progress", progress, "measure"],
      ["Errors", errorText, "wide"],
      ["Tokens", (run) => number(run.tokens), "number wide"],
      ["Cost", (run) => cost(run.cost), "number wide"],
    ],
    runs,
  );
}

/** Measures that plots show: [name, title, format, upper end of the axis]. */
const MEASURES = [
  ["resolved", "Resolved", percent, 1],
  ["tokens", "Tokens per attempt", number, null],
  ["turns", "Turns per attempt", (value) => number(value, 1), null],
  ["duration_s", "Time per attempt", duration, null],
];

/** The page of plots: each measure of some runs with its interval. */
export async function plotsPage(route) {
  const { runs } = await load("api/runs");
  const named = route.params.get("runs")?.split(",");
  const shown = runs.filter((run, i) => (named ? named.includes(run.id) : i < PLOTTED));
  const charts = el("div.charts");
  const draw = () => {
    const label = (run) =>
      el("a", { href: pageLink(["run", run.id]), "data-item": true }, run.name);
    const rows = (measure) =>
      shown.map((run) => ({ label: label(run), bars: [{ estimate: run.estimates[measure] }] }));
    const figures = MEASURES.map(([name, title, format, max]) =>
      barChart(title, rows(name), (value) => format(value), max),
    );
    redraw(charts, shown.length > 0 ? figures : notice("info", "None of these runs is here."));
  };
  draw();
  const note =
    "Means over tasks; whiskers are 95 % intervals. Attempts that ended by an error are not in them.";
  return {
    title: "Plots",
    crumbs: [["Plots"]],
    node: [el("h1", "Plots"), charts, el("p.note", note)],
    live: (run) => {
      const place = shown.findIndex((other) => other.id === run.id);
      if (place >= 0) shown[place] = run;
      draw();
    },
  };
}
