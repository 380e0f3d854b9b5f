import "./node.css";
import { useContext, useEffect, useMemo } from "preact/hooks";
import { age, bytes, clock, cpu, millis, percent, rate } from "./format.js";
import { Live, useLive, useNow } from "./hooks.js";
import { Meter } from "./meter.jsx";
import { Plot } from "./plot.jsx";
import { getJSON } from "./request.js";
import { podHref } from "./route.js";
import { Icon } from "./icon.jsx";
import { Status } from "./status.jsx";

/** The time axis of a node whose history is short. */
const tenMinutes = 600;

export function NodeView() {
  const { store } = useContext(Live);
  const { node, nodeHistory, connection } = useLive();
  const live = connection.state === "live";
  useEffect(() => {
    document.title = "Node · Swiftlet";
    if (!live) return;
    const abort = new AbortController();
    getJSON("api/history", abort.signal).then((h) => store.receive("nodeHistory", h.node)).catch(() => {}); // It is read again with the next stream.
    return () => abort.abort();
  }, [live]);
  if (!node) return <main id="main" class="page" tabIndex={-1}><h1 class="hidden">Node</h1><p class="empty">Reading the node…</p></main>;
  return (
    <main id="main" class="page node" tabIndex={-1}>
      <div class="title"><h1>{node.name}</h1><Status tone={node.ready ? "ok" : "bad"}>{node.ready ? "Ready" : "Not ready"}</Status></div>
      <Facts node={node} />
      {node.sentence && (
        <section class={`sentence-card ${node.ready ? "ok" : "bad"}`} aria-label="Why">
          <Icon name={node.ready ? "ok" : "bad"} />
          <p class="sentence-text" role="status">{node.sentence}</p>
        </section>
      )}
      <Capacity node={node} />
      {nodeHistory && <Plots history={nodeHistory} node={node} />}
      <div class="columns">
        <Conditions conditions={node.conditions ?? []} />
        <Top top={node.top ?? []} />
      </div>
    </main>
  );
}

function Facts({ node }) {
  const facts = [["Up", age(node.uptime)], ["Kubelet", node.version], ["Runtime", node.runtime], ["Kernel", node.kernel], ["System", node.os]];
  return <dl class="facts">{facts.filter(([, v]) => v).map(([term, value]) => <div key={term}><dt>{term}</dt><dd>{value}</dd></div>)}</dl>;
}

function Capacity({ node }) {
  const { pods } = useLive();
  const { allocatable = {}, capacity = {}, requests = {}, use = {} } = node;
  return (
    <section class="card" aria-labelledby="capacity-title">
      <h2 id="capacity-title">Capacity and use</h2>
      <div class="meters wide">
        <Meter title="CPU" use={use.cpu} request={requests.cpu} capacity={allocatable.cpu ?? capacity.cpu} format={cpu} />
        <Meter title="Memory" use={use.memory} request={requests.memory} capacity={allocatable.memory ?? capacity.memory} format={bytes} />
        <Meter title="Disk" use={use.disk} capacity={use.diskCapacity} format={bytes} />
        <Meter title="Pods" use={pods?.size} capacity={allocatable.pods ?? capacity.pods} format={(n) => n ?? "–"} />
      </div>
    </section>
  );
}

function Plots({ history: h, node }) {
  const t = h.t;
  const one = (name, values) => [{ name, values }];
  const series = useMemo(() => ({
    cpu: one("CPU", h.cpu),
    memory: one("Memory", h.memory),
    network: [{ name: "received", values: h.rx }, { name: "sent", values: h.tx }],
    psi: [{ name: "CPU", values: h.psiCPU }, { name: "memory", values: h.psiMemory }, { name: "I/O", values: h.psiIO }],
    disk: one("Disk", h.disk),
  }), [h]);
  const shared = { t, seconds: tenMinutes, group: "node" };
  const known = (values) => values.some((v) => v != null);
  return (
    <section class="card" aria-labelledby="plots-title">
      <h2 id="plots-title">Last hour</h2>
      <div class="plots">
        <Plot title="CPU" series={series.cpu} format={cpu} {...shared} />
        <Plot title="Memory" series={series.memory} format={bytes} max={node.capacity?.memory ?? undefined} {...shared} />
        <Plot title="Network" series={series.network} format={rate} {...shared} />
        <Plot title="Disk" series={series.disk} format={bytes} max={node.use?.diskCapacity ?? undefined} {...shared} />
        {known(h.psiCPU) || known(h.psiMemory) || known(h.psiIO)
          ? <Plot title="Pressure" series={series.psi} format={percent} {...shared} />
          : <p class="empty plot-missing">This kernel does not report pressure stalls (PSI).</p>}
      </div>
    </section>
  );
}

/** Conditions other than Ready are good when they are False. */
function good({ type, status }) {
  return status === (type === "Ready" ? "True" : "False");
}

function Conditions({ conditions }) {
  const now = useNow(1000);
  return (
    <section class="card" aria-labelledby="conditions-title">
      <h2 id="conditions-title">Conditions</h2>
      <ul class="conditions">
        {conditions.map((c) => (
          <li key={c.type}>
            <Status tone={good(c) ? "ok" : c.status === "Unknown" ? "unknown" : "bad"}>{c.type}</Status>
            <span class="muted">{c.status}{millis(c.since) != null && <> for {age((now - millis(c.since)) / 1000)}</>}</span>
            <p title={clock(c.since, now)}><span class="condition-reason">{c.reason}</span> {c.message}</p>
          </li>
        ))}
      </ul>
    </section>
  );
}

function Top({ top }) {
  const by = (what) => [...top].filter((p) => p[what] > 0).sort((a, b) => b[what] - a[what]).slice(0, 5);
  const list = (title, what, format) => {
    const pods = by(what);
    return (
      <div>
        <h3>{title}</h3>
        <ol>
          {pods.map((p) => (
            <li key={`${p.namespace}/${p.name}`}>
              <a class="clip" href={podHref(p.namespace, p.name)} title={`${p.namespace}/${p.name}`}>{p.name}</a><strong>{format(p[what])}</strong>
              <i aria-hidden="true" style={{ width: `${(p[what] / pods[0][what]) * 100}%` }} />
            </li>
          ))}
        </ol>
        {pods.length === 0 && <p class="empty">Nothing is measured yet.</p>}
      </div>
    );
  };
  return (
    <section class="card" aria-labelledby="top-title">
      <h2 id="top-title">Biggest consumers</h2>
      <div class="top">{list("By CPU", "cpu", cpu)}{list("By memory", "memory", bytes)}</div>
    </section>
  );
}
