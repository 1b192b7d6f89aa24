/** Opens the page of the address, and passes keys and live updates to the page. */

import { comparePage, pairPage } from "./compare.js";
import { isReport, pageLink, watchRuns } from "./data.js";
import { contents, el, failure, visible, withKey } from "./dom.js";
import { episodePage } from "./episode.js";
import { episodesPage } from "./episodes.js";
import { runsPage } from "./runs.js";

const LOADING_MS = 150; // delay before the page is marked as loading

/**
 * The pages by path, in which * is the id of a run; each has the names of the parameters whose
 * change opens a new page. A page is {title, crumbs, node}, and optionally shown(), live(runs),
 * close(), and update(params), which is called after a change of other parameters.
 */
const PAGES = {
  "": [runsPage],
  "run/*": [episodesPage],
  "run/*/episode": [episodePage, "task", "attempt"],
  pair: [pairPage, "a", "b"],
  compare: [comparePage, "a", "b"],
};

const [main, keys, live] = ["main", "keys", "live"].map((id) => document.getElementById(id));
let page = null;
let identity = "";
let requests = 0;

/** Scroll position and key of the focused element by earlier address, for navigation back. */
const positions = new Map();
let address = location.hash;

/** The segments and the parameters of an address. */
function routeOf(hash) {
  const [path, query = ""] = hash.slice(2).split("?");
  return { segments: path.split("/").map(decodeURIComponent), params: new URLSearchParams(query) };
}

/** Displays the page of the address, or an error. */
async function show() {
  if (location.hash && !location.hash.startsWith("#/")) return main.focus();
  positions.set(address, { top: scrollY, key: document.activeElement.dataset.key });
  address = location.hash;
  const before = history.state?.seen ? positions.get(address) : null;
  history.replaceState({ seen: true }, "", location.pathname + location.hash); // without a query
  const request = ++requests;
  let [next, newIdentity] = [null, ""];
  const loading = setTimeout(() => main.setAttribute("aria-busy", "true"), LOADING_MS);
  try {
    const route = routeOf(address);
    const path = route.segments.map((segment, i) => (i === 1 ? "*" : segment)).join("/");
    if (!Object.hasOwn(PAGES, path)) throw new Error("This page does not exist.");
    const [make, ...names] = PAGES[path];
    newIdentity = JSON.stringify([route.segments, names.map((name) => route.params.get(name))]);
    if (newIdentity === identity && page.update) page.update(route.params);
    else next = await make(route);
  } catch (error) {
    next = { title: "Error", crumbs: [["Error"]], node: failure(error, show) };
  }
  clearTimeout(loading);
  main.removeAttribute("aria-busy");
  if (next && request !== requests) return next.close?.(); // a newer page has been requested
  if (next) replacePage(next, before);
  identity = newIdentity;
}

/** Displays a new page; on navigation back, `before` is the page's entry in `positions`. */
function replacePage(next, before) {
  page?.close?.();
  page = next;
  main.replaceChildren(...contents(page.node));
  document.title = visible(`${page.title} · coding-gym`);
  showCrumbs([["coding-gym", pageLink([])], ...page.crumbs]);
  const focus = before?.key ? withKey(main, before.key) : null;
  (focus ?? main).focus({ preventScroll: true });
  scrollTo(0, before?.top ?? 0);
  page.shown?.();
}

function showCrumbs(crumbs) {
  const items = crumbs.map(([label, href], i) => {
    const last = i === crumbs.length - 1;
    return el("li", el("a", { href: href ?? address, "aria-current": last && "page" }, label));
  });
  document.getElementById("crumbs").replaceChildren(el("ol", items));
}

/** Moves the focus to the next or previous row or turn. */
function move(step) {
  const items = [...main.querySelectorAll("[data-item]:not([data-item] [data-item])")];
  const focused = items.findLastIndex((item) => item.contains(document.activeElement));
  const visibleItem = items.findIndex((item) => item.getBoundingClientRect().top > 40);
  const index = focused >= 0 ? focused + step : visibleItem;
  if (index >= items.length) return main.querySelector("[data-more]")?.click();
  const item = items[Math.max(index, 0)];
  item?.focus({ preventScroll: true });
  item?.scrollIntoView({ block: item.matches("a") ? "nearest" : "start" });
}

/** Performs the action of a key; keys with Ctrl, Alt or Meta belong to the browser. */
function onKey(event) {
  if (event.ctrlKey || event.altKey || event.metaKey || keys.open) return;
  const field = event.target.closest?.("input, select");
  if (field) return event.key === "Escape" && field.blur();
  const actions = {
    j: () => move(1),
    k: () => move(-1),
    "?": () => keys.showModal(),
    Escape: () => document.querySelector("#crumbs li:nth-last-child(2) a")?.click(),
  };
  const target = main.querySelector(`[data-shortcut="${CSS.escape(event.key)}"]`);
  const act =
    actions[event.key] ?? (target && (() => target[target.select ? "select" : "click"]()));
  if (!act) return;
  event.preventDefault();
  act();
}

document.getElementById("help").addEventListener("click", () => keys.showModal());
document.addEventListener("keydown", onKey);
addEventListener("hashchange", show);
history.scrollRestoration = "manual";
live.textContent = isReport ? "report" : "";
watchRuns(
  (runs) => page?.live?.(runs),
  (connected) => {
    live.textContent = connected ? "live" : "disconnected";
    live.className = connected ? "good" : "bad";
  },
);
show();
