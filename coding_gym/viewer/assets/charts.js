/** Charts drawn as SVG: bars with intervals, shares of a whole, and lines over the turns. */

import { el, svgEl } from "./dom.js";
import { isNumber, number } from "./format.js";

const across = (share) => `${(100 * Math.min(Math.max(share, 0), 1)).toFixed(2)}%`;

/** A bar from 0 to a value with a whisker from low to high, on an axis from 0 to `max`. */
export function intervalBar({ value, low, high }, max, kind = "") {
  const line = (x1, x2, y1, y2) => svgEl("line.whisker", { x1, x2, y1, y2 });
  const bar = svgEl("svg", { class: `bar ${kind}`, "aria-hidden": "true" });
  bar.append(svgEl("rect.track", { width: "100%", height: "100%" }));
  if (!isNumber(value) || !(max > 0)) return bar;
  bar.append(svgEl("rect.value", { width: across(value / max), height: "100%" }));
  if (isNumber(low) && isNumber(high)) {
    const [from, to] = [across(low / max), across(high / max)];
    bar.append(line(from, to, "50%", "50%"), line(from, from, "25%", "75%"));
    bar.append(line(to, to, "25%", "75%"));
  }
  return bar;
}

/** A list of bars. Rows are {label, bars: [{estimate, series}]}; `max` of null: the largest end. */
export function barChart(title, rows, format, max = null) {
  const bars = rows.flatMap((row) => row.bars);
  const ends = bars.flatMap(({ estimate }) => [estimate.value, estimate.high]).filter(isNumber);
  const top = max ?? Math.max(0, ...ends);
  const line = ({ estimate: { value, low, high }, series = "" }) => {
    const interval = isNumber(low) && isNumber(high) ? `${format(low)} to ${format(high)}` : "";
    return el(
      "div.bar-line",
      series ? el("span.series", series) : null,
      intervalBar({ value, low, high }, top, series.toLowerCase()),
      el("span.bar-value", el("b", format(value)), " ", el("span.interval", interval)),
    );
  };
  const items = rows.map((row) => el("li", el("div.bar-label", row.label), row.bars.map(line)));
  return el("figure.bars", el("figcaption", title), el("ul", items));
}

/** The attempts of a run as parts of one bar. */
export function progressBar({ done, planned, num_resolved, num_errors }) {
  const whole = Math.max(planned, done + num_errors, 1);
  const parts = { resolved: num_resolved, unresolved: done - num_resolved, error: num_errors };
  const label = Object.entries(parts).map(([kind, count]) => `${count} ${kind}`);
  const bar = svgEl("svg.progress", { role: "img", "aria-label": `${label.join(", ")}` });
  bar.append(svgEl("rect.track", { width: "100%", height: "100%" }));
  let x = 0;
  for (const [kind, count] of Object.entries(parts)) {
    const place = { x: across(x / whole), width: across(count / whole), height: "100%" };
    bar.append(svgEl(`rect.${kind}`, place));
    x += count;
  }
  return bar;
}

/** The points of a line on a plane of 1000 by 100 units, at most 1,000 of them. */
function linePoints(values, bottom, top) {
  const step = Math.ceil(values.length / 1_000);
  const last = values.length - 1;
  const kept = [...values.entries()].filter(([i]) => i % step === 0 || i === last);
  const point = ([i, value]) =>
    `${((1000 * i) / Math.max(last, 1)).toFixed(1)},${((100 * (top - value)) / (top - bottom)).toFixed(2)}`;
  return kept.map(point).join(" ");
}

/**
 * A line of cumulative values over the turns, with the limit as a dashed line where it is near.
 * Pointing at it reads a value; clicking calls `open(turn)`.
 */
export function lineChart(title, values, limit, format, open) {
  const total = values.at(-1);
  const share = isNumber(limit) ? ` of ${format(limit)}` : "";
  const bottom = Math.min(0, ...values.slice(0, 10_000));
  const most = values.reduce((a, b) => Math.max(a, b), 0);
  const near = isNumber(limit) && limit < 4 * most;
  const top = Math.max(most, near ? limit : 0) || 1;
  const readout = el("span.readout", format(total), share);
  const points = linePoints(values, bottom, top);
  const turnAt = (event) => {
    const { left, width } = plane.getBoundingClientRect();
    return Math.round(((event.clientX - left) / width) * (values.length - 1));
  };
  const read = (event) => {
    const turn = Math.min(Math.max(turnAt(event), 0), values.length - 1);
    readout.textContent = `turn ${turn}: ${format(values[turn])}`;
  };
  const rest = () => {
    readout.textContent = `${format(total)}${share}`;
  };
  const plane = svgEl(
    "svg.plane",
    {
      viewBox: "0 0 1000 100",
      preserveAspectRatio: "none",
      role: "img",
      "aria-label": `${title}: ${format(total)}${share} after ${number(values.length)} turns`,
      onclick: (event) => open(turnAt(event)),
      onmousemove: read,
      onmouseleave: rest,
    },
    svgEl("polygon.area", { points: `0,100 ${points} 1000,100` }),
    svgEl("polyline.line", { points }),
  );
  if (near) {
    const y = (100 * (top - limit)) / (top - bottom);
    plane.append(svgEl("line.limit", { x1: 0, x2: 1000, y1: y, y2: y }));
  }
  return el("figure.over-turns", el("figcaption", title, readout), plane);
}
