/** Loads the viewer's data from the server, or from the report that embeds the data. */

import { SEQUENCES } from "./text.js";

const WATCH_MS = 2_000;

/** Columns of the table of episodes that a select field filters. */
export const FILTERS = ["outcome", "repo", "difficulty", "stop_reason", "error_class"];

const embeddedPaths = readEmbedded();

/** True if the page is a report with embedded data. */
export const isReport = embeddedPaths !== null;

/** A value in the encoding of `encodeURIComponent`; U+FFFD replaces lone surrogates. */
function encode(value) {
  return encodeURIComponent(String(value).toWellFormed());
}

/** A path with parameters; parameters without a value are omitted. */
function withParams(path, params) {
  const present = Object.entries(params).filter(([, value]) => (value ?? "") !== "");
  const query = present.map(([name, value]) => `${name}=${encode(value)}`).join("&");
  return query ? `${path}?${query}` : path;
}

/** The address of a page, from the segments of its path. */
export function pageLink(segments, params = {}) {
  return withParams(`#/${segments.map(encode).join("/")}`, params);
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

/** The unique id of a run, and the name of the run if it differs from the id. */
export const runLabel = ({ id, name }) => (name === id ? id : `${id} (${name})`);

/** Loads the data of page `name` of a run. */
export function loadRun(run, name, params = {}) {
  return load(withParams(`api/runs/${encode(run)}/${name}`, params));
}

/** Loads all runs, the newest first. */
export async function loadRuns() {
  const { runs } = await load("api/runs");
  return runs.map(withSettings);
}

/** A run with further fields from its settings. */
function withSettings(run) {
  const { settings } = run;
  return {
    ...run,
    name: settings.run_id || run.id,
    agent: settings["agent.name"] ?? "",
    model: settings["agent.model"] ?? "",
    toolset: settings["episode.toolset"] ?? "",
    tasks: settings["tasks.source"] ?? "",
    created_at: settings.created_at ?? "",
  };
}

/** Loads the comparison of two runs. */
export function loadComparison(a, b) {
  return load(withParams("api/compare", { a, b }));
}

/** Loads the JSON at a path of the server, such as `api/runs`. */
async function load(path) {
  if (isReport) return loadEmbedded(path);
  const response = await fetch(path).catch(() => {
    throw new Error("The server does not reply; run `coding-gym view` again.");
  });
  if (response.ok) return response.json();
  const { detail } = await response.json().catch(() => ({}));
  throw new Error(detail ?? `The server replied with status ${response.status}.`);
}

/** Periodically calls `onRuns` with all runs, and `onState` with true if the server replied. */
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

/** The embedded data by normalised address; null if the page has none. */
function readEmbedded() {
  const element = document.getElementById("embedded");
  if (!element) return null;
  const entries = Object.entries(JSON.parse(element.textContent));
  return new Map(entries.map(([path, value]) => [normalise(path), value]));
}

/** An address with decoded parameters in alphabetical order. */
function normalise(path) {
  const [address, query = ""] = path.split("?");
  const params = [...new URLSearchParams(query)].sort();
  return JSON.stringify([decodeURIComponent(address), params]);
}

async function loadEmbedded(path) {
  const page = await decode(path);
  if (!page) throw new Error("This report does not contain the page.");
  return page;
}

/** Decodes the JSON at an embedded address, base64 of gzip; null if missing. */
async function decode(path) {
  const packed = embeddedPaths.get(normalise(path));
  if (packed === undefined) return null;
  const bytes = Uint8Array.from(atob(packed), (character) => character.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).json();
}

/** The sorted rows of a run that match `params`: task, text, and values of `FILTERS`. */
export async function selectEpisodes(run, rows, params) {
  const { task = "", text = "", sort, order } = params;
  const filters = FILTERS.filter((name) => params[name]);
  const matches = rows
    .filter((row) => row.task.toLowerCase().includes(task.toLowerCase()))
    .filter((row) => filters.every((name) => row[name] === params[name]));
  const results = text.trim() ? await withText(run, matches, text) : matches;
  return sort ? sortedRows(results, sort, order === "desc" ? -1 : 1) : results;
}

/** The rows of episodes that have the phrase in a turn. */
async function withText(run, rows, text) {
  if (!isReport) {
    const { matches } = await loadRun(run, "search", { text });
    const keys = new Set(matches.map((key) => JSON.stringify(key)));
    return rows.filter(({ task, attempt }) => keys.has(JSON.stringify([task, attempt])));
  }
  const phrase = text.match(/[\p{L}\p{N}]+/gu)?.join("[^\\p{L}\\p{N}]+") ?? "";
  const pattern = new RegExp(`(?<![\\p{L}\\p{N}])${phrase}`, "iu");
  const matches = [];
  for (const row of rows) {
    const { task, attempt } = row;
    const episode = await loadRun(run, "episode", { task, attempt }).catch(() => null);
    if (phrase && pattern.test(episode?.turns.map(searchedText).join("\n") ?? ""))
      matches.push(row);
  }
  return matches;
}

/** The texts of a turn that the server's search also reads. */
function searchedText({ thought, calls, observation }) {
  const inCall = (call) => [{ text: call.name }, ...Object.values(call.arguments), call.output];
  const parts = [thought, ...calls.flatMap(inCall), observation];
  const text = parts.map((part) => part?.text).join("\n");
  return text.replace(SEQUENCES, "");
}

/** Rows sorted by a column; rows without a value are last. */
function sortedRows(rows, name, direction) {
  const missing = (value) => (value ?? "") === "";
  return rows.toSorted(({ [name]: a }, { [name]: b }) => {
    if (missing(a) || missing(b)) return missing(a) - missing(b);
    return a < b ? -direction : a > b ? direction : 0;
  });
}
