/** Formats values: numbers, shares, durations, times, estimates, outcomes. */

import { el } from "./dom.js";

const NOTHING = "–";

/** Returns true for finite numbers. */
export function isNumber(value) {
  return typeof value === "number" && Number.isFinite(value);
}

/** A number with thousands separators and at most `digits` decimals; other values as "–". */
export function number(value, digits = 0) {
  if (!isNumber(value)) return NOTHING;
  return value.toLocaleString("en", { maximumFractionDigits: digits });
}

/** A share in per cent. */
export function percent(value) {
  return isNumber(value) ? `${Math.abs(100 * value).toFixed(1)} %` : NOTHING;
}

/** A difference of shares in percentage points, with its sign. */
export function points(value) {
  if (!isNumber(value)) return NOTHING;
  const size = Math.abs(100 * value).toFixed(1);
  return `${size === "0.0" ? "±" : value < 0 ? "−" : "+"}${size}`;
}

/** A cost; small costs have more decimals. */
export function cost(value) {
  if (!isNumber(value)) return NOTHING;
  return value >= 1 ? number(Math.round(value * 100) / 100, 2) : value.toFixed(4);
}

/** Seconds as a duration. */
export function duration(seconds) {
  if (!isNumber(seconds)) return NOTHING;
  if (seconds < 10) return `${seconds.toFixed(seconds < 1 ? 2 : 1)} s`;
  const whole = Math.round(seconds);
  if (whole < 60) return `${whole} s`;
  const padded = (value) => String(Math.floor(value)).padStart(2, "0");
  if (whole < 3600) return `${Math.floor(whole / 60)} m ${padded(whole % 60)} s`;
  return `${number(Math.floor(whole / 3600))} h ${padded((whole / 60) % 60)} m`;
}

/** A point in time, in the reader's time zone. */
export function time(iso) {
  const date = new Date(iso || Number.NaN);
  if (Number.isNaN(date.getTime())) return NOTHING;
  const text = date.toLocaleString("sv", { dateStyle: "short", timeStyle: "short" });
  return el("time", { datetime: date.toISOString(), title: iso }, text); // as 2026-01-31 12:00
}

/** An estimate with its 95 % interval, both formatted by `format`. */
export function estimate({ value, low, high }, format) {
  if (!isNumber(value)) return NOTHING;
  const hasInterval = isNumber(low) && isNumber(high);
  const interval = hasInterval ? el("small", `${format(low)} to ${format(high)}`) : null;
  return [format(value), " ", interval];
}

/** A field name, such as `max_turns`, as words. */
export function words(name) {
  return String(name ?? "").replaceAll("_", " ") || NOTHING;
}

/** An outcome with its sign. */
export function badge(outcome) {
  const sign = { resolved: "✓", unresolved: "✗", hacked: "⚑", error: "▲" }[outcome] ?? "·";
  return el(`b.${outcome}`, el("span", { "aria-hidden": "true" }, `${sign} `), outcome);
}

/** A status word with the sign of success or failure. */
export function status(good, word) {
  return el(`span.${good ? "good" : "bad"}`, good ? "✓ " : "✗ ", word);
}
