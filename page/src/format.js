// Quantities and times as people read them. Unknown values are a dash.

const dash = "–";

/** CPU as Kubernetes writes it: 250m, 1.5. */
export function cpu(cores) {
  if (cores == null) return dash;
  if (cores === 0) return "0";
  if (cores < 0.001) return "<1m";
  if (cores < 1) return `${Math.round(cores * 1000)}m`;
  return trim(cores, cores < 10 ? 2 : 1);
}

const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];

export function bytes(n) {
  if (n == null) return dash;
  let unit = 0;
  while (Math.abs(n) >= 1000 && unit < units.length - 1) {
    n /= 1024;
    unit++;
  }
  return `${trim(n, n < 10 && unit > 0 ? 1 : 0)} ${units[unit]}`;
}

export function rate(n) {
  return n == null ? dash : `${bytes(n)}/s`;
}

export function percent(n) {
  return n == null ? dash : `${trim(n, n < 10 ? 1 : 0)} %`;
}

function trim(n, digits) {
  return String(Number(n.toFixed(digits)));
}

/** An age or a duration in seconds, with at most two units, as kubectl writes it: 45s, 3m20s, 5h, 2d4h. */
export function age(seconds) {
  if (seconds == null || Number.isNaN(seconds)) return dash;
  const s = Math.max(0, Math.floor(seconds));
  if (s < 120) return `${s}s`;
  const m = Math.floor(s / 60);
  if (m < 10) return pair(m, "m", s % 60, "s");
  if (m < 180) return `${m}m`;
  const h = Math.floor(m / 60);
  if (h < 8) return pair(h, "h", m % 60, "m");
  if (h < 48) return `${h}h`;
  const d = Math.floor(h / 24);
  return d < 8 ? pair(d, "d", h % 24, "h") : `${d}d`;
}

function pair(a, unitA, b, unitB) {
  return b ? `${a}${unitA}${b}${unitB}` : `${a}${unitA}`;
}

/** A duration in milliseconds with the precision that is worth reading: 3 ms, 1.2 s, 4m. */
export function duration(ms) {
  if (ms < 1) return "<1 ms";
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 10_000) return `${(ms / 1000).toFixed(1)} s`;
  if (ms < 120_000) return `${Math.round(ms / 1000)} s`;
  return age(ms / 1000);
}

/** A time of day in the reader's zone, with the date if it is not today's. */
export function clock(at, now = Date.now()) {
  const t = millis(at);
  if (t == null) return dash;
  const time = new Date(t);
  const hour = time.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" });
  if (time.toDateString() === new Date(now).toDateString()) return hour;
  return `${time.toLocaleDateString([], { month: "short", day: "numeric" })} ${hour}`;
}

/** Milliseconds of an RFC 3339 time, or what are milliseconds already; null for none and for Go's zero time. */
export function millis(at) {
  if (typeof at === "number") return at;
  if (!at) return null;
  const t = Date.parse(at);
  return Number.isNaN(t) || t < 0 ? null : t;
}

/** 1st, 2nd, 3rd, 4th. */
export function ordinal(n) {
  const tens = n % 100;
  const ones = tens > 10 && tens < 14 ? 0 : n % 10;
  return n + (["th", "st", "nd", "rd"][ones] ?? "th");
}
