import "./waterfall.css";
import { bytes, clock, duration, millis } from "./format.js";
import { useNow } from "./hooks.js";
import { Icon } from "./icon.jsx";
import { timeline } from "./timeline.js";

/** The steps of the pod, each a bar, on one time axis. */
export function Waterfall({ steps, omitted }) {
  const active = steps.some((s) => s.state === "running" || s.state === "queued");
  const now = useNow(active ? 250 : 1000);
  const groups = timeline(steps, now);
  return (
    <section class="card" aria-labelledby="waterfall-title">
      <h2 id="waterfall-title">Start, step by step</h2>
      {groups.length === 0 && <p class="empty">The agent has no steps of this pod: it knows those since its own start.</p>}
      {groups.map((group, i) => <Group key={i} group={group} now={now} later={i > 0} />)}
      {omitted > 0 && <p class="muted">{omitted} more steps, all done, are not kept.</p>}
    </section>
  );
}

function Group({ group, now, later }) {
  return (
    <table class="waterfall">
      <caption>{later ? "Later, from " : "From "}{clock(group.begin, now)}</caption>
      <thead>
        <tr>
          <th scope="col">Step</th>
          <th scope="col" class="axis">
            <span class="hidden">Time</span>
            <span class="ticks" aria-hidden="true">
              {group.ticks.map((t) => <span key={t.ms} style={{ left: `${t.at}%` }}>{t.ms === 0 ? "0" : duration(t.ms)}</span>)}
            </span>
          </th>
          <th scope="col" class="took">Took</th>
        </tr>
      </thead>
      {group.bars.map((b) => <Bar key={`${b.step.kind} ${b.step.name ?? ""}`} bar={b} ticks={group.ticks} now={now} />)}
    </table>
  );
}

function Bar({ bar, ticks, now }) {
  const { step } = bar;
  const failing = step.state === "failed";
  const details = notes(step, now);
  const beside = failing || step.error ? "" : details.join(" · ");
  const took = bar.active || failing ? bar.ended - bar.since : bar.ended - bar.began;
  const tones = { running: "wait", queued: "wait", failed: "bad", done: "done" };
  return (
    <tbody class={step.state}>
      <tr>
        <th scope="row">
          <Icon name={tones[step.state]} />
          <span class="step" title={`${step.kind} ${step.name ?? ""}`}><span class="kind">{step.kind}</span> {step.name}</span>
        </th>
        <td class="track">
          {ticks.map((t) => <i key={t.ms} class="grid" style={{ left: `${t.at}%` }} />)}
          {bar.lastLeft > bar.left && <i class="bar earlier" style={{ left: `${bar.left}%`, width: `${bar.lastLeft - bar.left}%` }} />}
          <i class={`bar ${step.state}`} style={{ left: `${bar.lastLeft}%`, width: `${bar.right - bar.lastLeft}%` }} />
          {beside && <span class="beside" style={bar.right < 80 ? { left: `${bar.right}%` } : { right: `${100 - bar.left}%` }}>{beside}</span>}
        </td>
        <td class="took">
          <span class="hidden">from {clock(bar.since, now)}, {step.state} </span>
          {step.state === "queued" ? "queued" : failing ? "failed" : duration(took)}
        </td>
      </tr>
      {details.length > 0 && !beside && <tr class="notes"><td colSpan={3}>{details.join(" · ")}</td></tr>}
    </tbody>
  );
}

function notes(step, now) {
  const parts = [];
  const next = millis(step.next);
  if (step.bytes > 0) parts.push(bytes(step.bytes));
  if (step.attempts > 1) parts.push(`${step.attempts} attempts`);
  if (next != null && step.state === "failed") parts.push(next > now ? `next try in ${duration(next - now)}` : "next try now");
  if (step.error) parts.push(step.state === "done" ? `earlier: ${step.error}` : step.error);
  return parts;
}
