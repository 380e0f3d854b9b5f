import { useMemo } from "preact/hooks";
import { bytes, cpu } from "./format.js";
import { useLive } from "./hooks.js";
import { Plot } from "./plot.jsx";

const tenMinutes = 600;

/** What each container uses against its limit. */
export function PodUsage({ containers }) {
  const { podHistory } = useLive();
  const plots = useMemo(() => ["cpu", "memory"].map((what) => containers
    .filter((c) => podHistory?.containers[c.name])
    .map((c) => ({ name: c.name, values: podHistory.containers[c.name][what], limit: c.limits?.[what] ?? undefined }))), [podHistory, containers]);
  return (
    <section class="card" aria-labelledby="usage-title">
      <h2 id="usage-title">Use, last ten minutes</h2>
      {!plots[0].length ? <p class="empty">Nothing is measured yet. While this page is open, a point is added every 10 s.</p> : (
        <div class="plots">
          <Plot title="CPU" t={podHistory.t} series={plots[0]} format={cpu} seconds={tenMinutes} group="pod" />
          <Plot title="Memory" t={podHistory.t} series={plots[1]} format={bytes} seconds={tenMinutes} group="pod" />
        </div>
      )}
    </section>
  );
}
