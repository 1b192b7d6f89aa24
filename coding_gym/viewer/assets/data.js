/** The viewer's data: from the server, or from the report that embeds them. */

import { SEQUENCES } from "./text.js";

const WATCH_MS = 2_000;

/** Columns of the table of episodes with a filter for one value. */
export const FILTERS = ["outcome", "repo", "difficulty", "stop_reason", "error_class"];

const embeddedPaths = readEmbedded();

/** Whether the page is a report with embedded data. */
export const isReport = embeddedPaths !== null;

/** A value in an address, as `encodeURIComponent` writes it. */
function encoded(value) {
  return encodeURIComponent(String(value).toWellFormed());
}

/** A path with parameters; parameters without a value are omitted. */
function withParams(path, params) {
  const present = Object.entries(params).filter(([, value]) => (value ?? "") !== "");
  const query = present.map(([name, value]) => `${name}=${encoded(value)}`).join("&");
  return query ? `${path}?${query}` : path;
}

/** The address of a page, from the segments of its path. */
export function pageLink(segments, params = {}) {
  return withParams(`#/${segments.map(encoded).join("/")}`, params);
}

/** The address of the page of one episode. */
export function episodeLink({ run, task, attempt }, params = {}) {
  return pageLink(["run", run, "episode"], { task, attempt, ...params });
}

/** The address of the page of two episodes side by side. */
export function pairLink(a, b) {
  const name = ({ run, task, attempt }) => `${run}|${task}|${attempt}`;
  return pageLink(["pair"], { a: name(a), b: name(b) });
}

/** The unique id of a run, and its name if it differs. */
export const runLabel = ({ id, name }) => (name === id ? id : `${id} (${name})`);

/** The data of a run's page `name`. */
export function loadRun(run, name, params = {}) {
  return load(withParams(`api/runs/${encoded(run)}/${name}`, params));
}

/** All runs, the newest first. */
export async function loadRuns() {
  const { runs } = await load("api/runs");
  return runs.map(described);
}

/** A run with the settings that pages show by name. */
function described(run) {
  const { settings } = run;
  return {
    ...run,
    name: settings.run_id || run.id,
    agent: settings["agent.name"] ?? "",
    model: settings["agent.model"] ?? "",
    toolset: settings["episode.toolset"] ?? "",
    tasks: settings["tasks.source"] ?? "",
    created_at: settings.created_at ?? "",
    planned: run.num_tasks * run.attempts,
  };
}

/** The comparison of two runs. */
export function loadComparison(a, b) {
  return load(withParams("api/compare", { a, b }));
}

/** The object at a path of the server, such as `api/runs`. */
async function load(path) {
  if (isReport) return loadEmbedded(path);
  const response = await fetch(path).catch(() => {
    throw new Error("The server does not reply. Is `coding-gym view` still running?");
  });
  if (response.ok) return response.json();
  const { detail } = await response.json().catch(() => ({}));
  throw new Error(detail ?? `The server replied with status ${response.status}.`);
}

/** Calls `onRuns` with all runs at intervals, and `onState` with whether the server replies. */
export function watchRuns(onRuns, onState) {
  const poll = async () => {
    try {
      if (!document.hidden) onRuns(await loadRuns());
      onState(true);
    } catch {
      onState(false);
    }
    setTimeout(poll, WATCH_MS);
  };
  if (!isReport) poll();
}

/** The embedded texts by normalised address; null without embedded data. */
function readEmbedded() {
  const element = document.getElementById("embedded");
  if (!element) return null;
  const entries = Object.entries(JSON.parse(element.textContent));
  return new Map(entries.map(([path, value]) => [uniform(path), value]));
}

/** Normalises the order and the encoding of the parameters of an address. */
function uniform(path) {
  const [place, query = ""] = path.split("?");
  const params = [...new URLSearchParams(query)].sort();
  return JSON.stringify([decodeURIComponent(place), params]);
}

async function loadEmbedded(path) {
  const page = await decoded(path);
  if (!page) throw new Error("This report does not contain this page.");
  return page;
}

/** The JSON of an embedded address: base64 of gzip; null if it is missing. */
async function decoded(path) {
  const packed = embeddedPaths.get(uniform(path));
  if (packed === undefined) return null;
  const bytes = Uint8Array.from(atob(packed), (character) => character.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).json();
}

/** The rows of a run's episodes that `params` (task, text, a value of a column) select, sorted. */
export async function selectEpisodes(run, rows, params) {
  const { task = "", text = "", sort, order } = params;
  const wanted = FILTERS.filter((name) => params[name]);
  const found = rows
    .filter((row) => row.task.toLowerCase().includes(task.toLowerCase()))
    .filter((row) => wanted.every((name) => row[name] === params[name]));
  const hits = text.trim() ? await withText(run, found, text) : found;
  return sort ? sortedRows(hits, sort, order === "desc" ? -1 : 1) : hits;
}

/** The rows of the episodes with a phrase in any turn. */
async function withText(run, rows, text) {
  if (!isReport) {
    const { found } = await loadRun(run, "search", { text });
    const keys = new Set(found.map((key) => JSON.stringify(key)));
    return rows.filter(({ task, attempt }) => keys.has(JSON.stringify([task, attempt])));
  }
  const phrase = text.match(/[\p{L}\p{N}]+/gu)?.join("[^\\p{L}\\p{N}]+") ?? "";
  const pattern = new RegExp(`(?<![\\p{L}\\p{N}])${phrase}`, "iu");
  const hits = [];
  for (const row of rows) {
    const { task, attempt } = row;
    const episode = await loadRun(run, "episode", { task, attempt }).catch(() => null);
    if (phrase && pattern.test(episode?.turns.map(searchedText).join("\n") ?? "")) hits.push(row);
  }
  return hits;
}

/** The texts of a turn that the server searches. */
function searchedText({ thought, calls, observation }) {
  const inCall = (call) => [{ text: call.name }, ...Object.values(call.arguments), call.output];
  const parts = [thought, ...calls.flatMap(inCall), observation];
  const text = parts.map((part) => part?.text).join("\n");
  return text.replace(SEQUENCES, "");
}

/** Rows in the order of one column; rows without a value come last. */
function sortedRows(rows, name, direction) {
  const missing = (value) => (value ?? "") === "";
  return rows.toSorted(({ [name]: a }, { [name]: b }) => {
    if (missing(a) || missing(b)) return missing(a) - missing(b);
    return a < b ? -direction : a > b ? direction : 0;
  });
}
