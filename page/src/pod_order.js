// How the table of pods is searched and sorted.
import { toneOf } from "./tone.js";

/** Whether each word of the search is in what the row shows. */
export function matches(row, search) {
  const words = search.toLowerCase().split(/\s+/).filter(Boolean);
  if (words.length === 0) return true;
  const text = [row.namespace, row.name, row.phase, row.ip, row.sentence, ...(row.containers ?? [])].join(" ").toLowerCase();
  return words.every((word) => text.includes(word));
}

const urgency = { bad: 0, wait: 1, ok: 2, done: 3 };
const names = new Intl.Collator("en", { numeric: true });

const keys = {
  status: (row) => urgency[toneOf(row)],
  ready: (row) => Number(row.ready.split("/")[0]) / Number(row.ready.split("/")[1] || 1),
  restarts: (row) => row.restarts,
  cpu: (row) => row.cpu ?? -1,
  memory: (row) => row.memory ?? -1,
  ip: (row) => row.ip.split(".").reduce((sum, part) => sum * 256 + Number(part), 0) || 0,
  age: (row) => -Date.parse(row.created ?? 0),
};

/** Compares rows by a column, and those that are equal by name. */
export function compare({ by, descending }) {
  const sign = descending ? -1 : 1;
  const byName = (a, b) => names.compare(a.name, b.name) || names.compare(a.namespace, b.namespace);
  const key = keys[by];
  if (!key) return (a, b) => sign * byName(a, b);
  return (a, b) => sign * (key(a) - key(b)) || byName(a, b);
}
