/** The viewer's data: from the server, or from the report that embeds them. */

import { SEQUENCES } from "./text.js";

const embeddedPaths = readEmbedded();

/** Whether the page is a report that carries all of its data. */
export const isReport = embeddedPaths !== null;

/** A value in an address, as `encodeURIComponent` writes it. */
function encoded(value) {
  return encodeURIComponent(String(value).toWellFormed());
}

/** A path with parameters; those without a value are left out. */
function withParams(path, params) {
  const given = Object.entries(params).filter(([, value]) => (value ?? "") !== "");
  const query = given.map(([name, value]) => `${name}=${encoded(value)}`).join("&");
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

/** A run by its id, which no other run has, and its name where that differs. */
export const runLabel = ({ id, name }) => (name === id ? id : `${id} (${name})`);

/** The data of a run, or of its page `name`. */
export function loadRun(run, name = "", params = {}) {
  return load(withParams(`api/runs/${encoded(run)}${name && `/${name}`}`, params));
}

/** The comparison of two runs. */
export function loadComparison(a, b) {
  return load(withParams("api/compare", { a, b }));
}

/** The object at a path of the server, such as `api/runs`. */
export async function load(path) {
  if (isReport) return loadEmbedded(path);
  const response = await fetch(path).catch(() => {
    throw new Error("The server does not answer. Does `coding-gym view` still run?");
  });
  if (response.ok) return response.json();
  const { detail } = await response.json().catch(() => ({}));
  throw new Error(detail ?? `The server answers with status ${response.status}.`);
}

/**
 * Calls `onRun` for every run, again when it changed, and `onState` with whether the server is
 * there; not while the page is hidden, as browsers allow six connections to a server.
 */
export function watchRuns(onRun, onState) {
  if (isReport) return;
  let source = null;
  const follow = () => {
    source?.close();
    if (document.hidden) return;
    source = new EventSource("api/events");
    source.addEventListener("open", () => onState(true));
    source.addEventListener("error", () => onState(false));
    source.addEventListener("run", (event) => onRun(JSON.parse(event.data)));
  };
  document.addEventListener("visibilitychange", follow);
  follow();
}

/** The embedded texts by their address in one form; null where nothing is embedded. */
function readEmbedded() {
  const element = document.getElementById("embedded");
  if (!element) return null;
  const entries = Object.entries(JSON.parse(element.textContent));
  return new Map(entries.map(([path, value]) => [uniform(path), value]));
}

/** One form for addresses that differ only by the order or encoding of their parameters. */
function uniform(path) {
  const [place, query = ""] = path.split("?");
  const params = [...new URLSearchParams(query)].sort();
  return JSON.stringify([decodeURIComponent(place), params]);
}

async function loadEmbedded(path) {
  const [place, query] = path.split("?");
  const found = await decoded(path);
  if (found) return found;
  const rows = place.endsWith("/episodes") ? await decoded(place) : null;
  if (!rows) throw new Error("This report does not hold it.");
  return selectEpisodes(place, rows, new URLSearchParams(query));
}

/** The JSON of an embedded address: base64 of gzip; null where it is not there. */
async function decoded(path) {
  const packed = embeddedPaths.get(uniform(path));
  if (packed === undefined) return null;
  const bytes = Uint8Array.from(atob(packed), (character) => character.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).json();
}

/** What the server does for a page of episodes: filters, sorts, and takes some rows. */
async function selectEpisodes(place, whole, params) {
  const { task = "", text = "", sort, order, offset = 0, limit = 100 } = Object.fromEntries(params);
  const names = ["repo", "difficulty", "outcome", "stop_reason", "error_class"];
  const wanted = names.filter((name) => params.get(name));
  let rows = whole.episodes
    .filter((row) => row.task.toLowerCase().includes(task.toLowerCase()))
    .filter((row) => wanted.every((name) => row[name] === params.get(name)));
  const phrase = text.match(/[\p{L}\p{N}]+/gu)?.join("[^\\p{L}\\p{N}]+");
  if (phrase) {
    const pattern = new RegExp(`(?<![\\p{L}\\p{N}])${phrase}`, "iu");
    const run = place.slice(0, -"/episodes".length);
    const found = [];
    for (const row of rows) {
      if (await hasText(run, row, pattern)) found.push(row);
    }
    rows = found;
  }
  if (sort) rows = sortedRows(rows, sort, order === "desc" ? -1 : 1);
  const episodes = rows.slice(Number(offset), Number(offset) + Number(limit));
  return { total: rows.length, offset: Number(offset), episodes, facets: whole.facets };
}

/** Whether any turn of an episode of the report holds the phrase. */
async function hasText(run, { task, attempt }, phrase) {
  const episode = await decoded(withParams(`${run}/episode`, { task, attempt }));
  let turns = episode?.turns ?? [];
  for (let start = 0; turns.length > 0; ) {
    if (phrase.test(turns.map(searchedText).join("\n"))) return true;
    start += turns.length;
    const next = withParams(`${run}/turns`, { task, attempt, start });
    turns = start < episode.num_turns ? ((await decoded(next))?.turns ?? []) : [];
  }
  return false;
}

/** The texts of a turn that the server searches. */
function searchedText({ thought, calls, observation }) {
  const inCall = (call) => [{ text: call.name }, ...Object.values(call.arguments), call.output];
  const parts = [thought, ...calls.flatMap(inCall), observation];
  const text = parts.map((part) => part?.text).join("\n");
  return text.replace(SEQUENCES, "");
}

/** Rows in the order of one column; those without a value come last. */
function sortedRows(rows, name, direction) {
  const missing = (value) => (value ?? "") === "";
  return rows.toSorted(({ [name]: a }, { [name]: b }) => {
    if (missing(a) || missing(b)) return missing(a) - missing(b);
    return a < b ? -direction : a > b ? direction : 0;
  });
}
