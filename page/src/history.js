// Series that grow at one end and lose their oldest points at the other.

/** Seconds between two points. */
const interval = 10;

/** Points come at the interval while the connection stands. A time further away, or earlier, means that the node's clock was set. */
const maxGap = 60;

/** The times of a history to which a point at t is appended: after the node's clock was set, its older points move with it. */
function timesBefore(times, t) {
  const last = times.at(-1);
  if (last === undefined || (t > last && t - last <= maxGap)) return times;
  return times.map((at) => at + t - interval - last);
}

/** The history {t, NAME: values} with one more point {t, NAME: value}. */
export function append(history, point, limit) {
  if (point.t === history.t.at(-1)) return history;
  const next = {};
  for (const [name, values] of Object.entries({ ...history, t: timesBefore(history.t, point.t) })) {
    next[name] = [...values, point[name] ?? null].slice(-limit);
  }
  return next;
}

/** The same for {t, containers: {NAME: {cpu, memory}}}; containers may begin at any time. */
export function appendContainers(history, point, limit) {
  if (point.t === history.t.at(-1)) return history;
  const unknown = history.t.map(() => null);
  const containers = {};
  for (const name of new Set([...Object.keys(history.containers), ...Object.keys(point.containers)])) {
    const series = history.containers[name] ?? { cpu: unknown, memory: unknown };
    const value = point.containers[name] ?? {};
    containers[name] = {
      cpu: [...series.cpu, value.cpu ?? null].slice(-limit),
      memory: [...series.memory, value.memory ?? null].slice(-limit),
    };
  }
  return { t: [...timesBefore(history.t, point.t), point.t].slice(-limit), containers };
}

/** The history without the points before the first known value. */
export function trim(history) {
  const series = Object.entries(history).filter(([name]) => name !== "t");
  const first = history.t.findIndex((_, i) => series.some(([, values]) => values[i] != null));
  const from = first < 0 ? history.t.length : first;
  return Object.fromEntries(Object.entries(history).map(([name, values]) => [name, values.slice(from)]));
}
