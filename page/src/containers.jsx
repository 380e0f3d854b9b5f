import { age, bytes, clock, cpu, millis } from "./format.js";
import { useLive, useNow } from "./hooks.js";
import { Meter } from "./meter.jsx";
import { podHref } from "./route.js";
import { Status } from "./status.jsx";

export function Containers({ namespace, name, containers }) {
  const { podHistory } = useLive();
  const now = useNow(1000);
  return (
    <section class="card" aria-labelledby="containers-title">
      <h2 id="containers-title">Containers</h2>
      <div class="containers">
        {containers.map((c) => <Container key={c.name} container={c} namespace={namespace} pod={name} usage={podHistory?.containers[c.name]} now={now} />)}
      </div>
    </section>
  );
}

function Container({ container: c, namespace, pod, usage, now }) {
  const started = millis(c.started);
  const running = c.state.toLowerCase() === "running";
  return (
    <article class="container">
      <header>
        <h3 class="clip">{c.name}</h3>
        {c.kind !== "app" && <span class="tag">{c.kind}</span>}
        <Status tone={tone(c)}>{describe(c)}</Status>
      </header>
      <p class="image" title={c.image}>{c.image}</p>
      <ul class="dots muted">
        {started != null && <li title={clock(started, now)}>started {age((now - started) / 1000)} ago</li>}
        <li>{c.restarts === 1 ? "1 restart" : `${c.restarts} restarts`}</li>
        <li><a href={podHref(namespace, pod, "logs", c.name)}>Log</a></li>
        {running && <li><a href={podHref(namespace, pod, "terminal", c.name)}>Terminal</a></li>}
      </ul>
      {(running || c.kind === "app") && (
        <div class="meters">
          <Meter title="CPU" use={running ? usage?.cpu.at(-1) : null} request={c.requests?.cpu} limit={c.limits?.cpu} format={cpu} />
          <Meter title="Memory" use={running ? usage?.memory.at(-1) : null} request={c.requests?.memory} limit={c.limits?.memory} format={bytes} />
        </div>
      )}
    </article>
  );
}

function describe(c) {
  const state = c.state.toLowerCase();
  if (state === "running") return c.ready || c.kind === "init" ? "Running" : "Running, not ready";
  const reason = c.reason || (state === "waiting" ? "Waiting" : "Terminated");
  return c.exitCode != null && !(state === "terminated" && c.reason === "Completed") ? `${reason}, exit code ${c.exitCode}` : reason;
}

function tone(c) {
  const state = c.state.toLowerCase();
  if (state === "running") return c.ready ? "ok" : "wait";
  if (state === "terminated") return c.exitCode === 0 ? "done" : "bad";
  return /^(|Waiting|ContainerCreating|PodInitializing)$/.test(c.reason ?? "") ? "wait" : "bad";
}
