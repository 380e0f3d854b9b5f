const waiting = /^(Pending|ContainerCreating|PodInitializing|Terminating|Running|NotReady|SchedulingGated|Init:\d+\/\d+)$/;

/** Whether a pod is ok, done, wait (on its way) or bad, from what kubectl shows as its status. */
export function toneOf({ phase, up }) {
  if (phase === "Completed" || phase === "Succeeded") return "done";
  if (up) return "ok";
  return waiting.test(phase) ? "wait" : "bad";
}

export function isDown(row) {
  const tone = toneOf(row);
  return tone === "bad" || tone === "wait";
}
