/** Charts drawn as SVG: bars with intervals, shares of a whole, and lines over the turns. */

import { el, svgEl } from "./dom.js";
import { isNumber, number } from "./format.js";

const toPercent = (share) => `${(100 * Math.min(Math.max(share, 0), 1)).toFixed(2)}%`;

const rect = (kind, x, width) =>
  svgEl(`rect.${kind}`, { x: toPercent(x), width: toPercent(width), height: "100%" });

/** A bar from 0 to a value, with a whisker from low to high, on an axis from 0 to `max`. */
export function intervalBar({ value, low, high }, max, kind = "") {
  const bar = svgEl("svg", { class: `bar ${kind}`, "aria-hidden": "true" }, rect("track", 0, 1));
  if (!isNumber(value) || !(max > 0)) return bar;
  bar.append(rect("value", 0, value / max));
  if (!isNumber(low) || !isNumber(high)) return bar;
  const line = (x1, x2, y1, y2) => svgEl("line.whisker", { x1, x2, y1, y2 });
  const [from, to] = [toPercent(low / max), toPercent(high / max)];
  bar.append(line(from, to, "50%", "50%"), line(from, from, "25%", "75%"));
  bar.append(line(to, to, "25%", "75%"));
  return bar;
}

/** A bar with the shares of resolved, unresolved and failed attempts of a run. */
export function progressBar({ done, planned, num_resolved, num_errors }) {
  const whole = Math.max(planned, done + num_errors, 1);
  const parts = { resolved: num_resolved, unresolved: done - num_resolved, error: num_errors };
  const label = Object.entries(parts).map(([kind, count]) => ` ${count} ${kind}`);
  const name = { role: "img", "aria-label": `${label}` };
  const bar = svgEl("svg.bar", name, rect("track", 0, 1));
  let x = 0;
  for (const [kind, count] of Object.entries(parts)) {
    bar.append(rect(kind, x / whole, count / whole));
    x += count;
  }
  return bar;
}

/** The points of a line on a plane of 1000 by 100 units; about 1,000 points at most. */
function linePoints(values, bottom, top) {
  const last = values.length - 1;
  const step = Math.ceil(values.length / 1_000);
  const samples = [...values.entries()].filter(([i]) => i % step === 0 || i === last);
  const x = (i) => ((1000 * i) / Math.max(last, 1)).toFixed(1);
  const y = (value) => ((100 * (top - value)) / (top - bottom)).toFixed(2);
  return samples.map(([i, value]) => `${x(i)},${y(value)}`).join(" ");
}

/** A line over the turns, and the limit if it is below 4 times the maximum; clicks open turns. */
export function lineChart(title, values, limit, format, open) {
  const largest = values.reduce((a, b) => Math.max(a, b), 0);
  const bottom = values.reduce((a, b) => Math.min(a, b), 0);
  const isNear = isNumber(limit) && limit < 4 * largest;
  const top = Math.max(largest, isNear ? limit : 0) || 1;
  const last = format(values.at(-1)) + (isNumber(limit) ? ` of ${format(limit)}` : "");
  const onclick = ({ offsetX, currentTarget: plane }) => {
    open(Math.round((offsetX / plane.getBoundingClientRect().width) * (values.length - 1)));
  };
  const points = linePoints(values, bottom, top);
  const label = `${title}: ${last} after ${number(values.length)} turns`;
  const shape = { viewBox: "0 0 1000 100", preserveAspectRatio: "none" };
  const plane = svgEl(
    "svg.plane",
    { ...shape, role: "img", "aria-label": label, onclick },
    svgEl("polygon.area", { points: `0,100 ${points} 1000,100` }),
    svgEl("polyline.curve", { points }),
  );
  if (isNear)
    plane.append(svgEl("polyline.limit", { points: linePoints([limit, limit], bottom, top) }));
  return el("figure", el("figcaption.row", title, el("small", last)), plane);
}
