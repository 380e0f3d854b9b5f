// The steps of a pod as bars on time axes.
import { millis } from "./format.js";

/** A pause this long, and longer than all that was before it, begins a new axis: a probe that fails after hours is not part of the start. */
const longPause = 30_000;

/**
 * Splits the steps of a report into groups that share one axis. A bar has three times: attempts begin at since, the last one
 * takes from began to ended, or is still running.
 */
export function timeline(steps, now) {
  const bars = steps.map((s) => bar(s, now)).sort((a, b) => a.since - b.since || a.ended - b.ended);
  const groups = [];
  for (const b of bars) {
    const group = groups.at(-1);
    if (!group || b.since - group.end > Math.max(longPause, group.end - group.begin)) {
      groups.push({ begin: b.since, end: b.ended, bars: [b] });
      continue;
    }
    group.bars.push(b);
    group.end = Math.max(group.end, b.ended);
  }
  for (const group of groups) place(group);
  return groups;
}

function bar(step, now) {
  const began = millis(step.began) ?? millis(step.since) ?? now;
  const since = Math.min(millis(step.since) ?? began, began);
  const active = step.state === "running" || step.state === "queued";
  const ended = active ? Math.max(now, began) : Math.max(millis(step.ended) ?? began, began);
  return { step, since, began, ended, active };
}

/** Sets where each bar is, in percent of the axis, which ends at a round time. */
function place(group) {
  const length = Math.max(group.end - group.begin, 10);
  const interval = niceInterval(length / 4);
  group.length = Math.ceil((length * 1.001) / interval) * interval;
  const percent = (t) => ((t - group.begin) / group.length) * 100;
  for (const b of group.bars) {
    b.left = percent(b.since);
    b.lastLeft = percent(b.began);
    b.right = percent(b.ended);
  }
  group.ticks = [];
  for (let t = 0; t <= group.length + interval / 2; t += interval) {
    group.ticks.push({ at: (t / group.length) * 100, ms: t });
  }
}

const intervals = [1, 2, 5, 10, 20, 50, 100, 200, 500].concat([1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 28800, 86400].map((s) => s * 1000));

function niceInterval(least) {
  return intervals.find((i) => i >= least) ?? Math.ceil(least / 86_400_000) * 86_400_000;
}
