import "./pod.css";
import { useContext, useEffect, useRef } from "preact/hooks";
import { Containers } from "./containers.jsx";
import { Events } from "./events.jsx";
import { age, clock, millis } from "./format.js";
import { Live, useLive, useNow } from "./hooks.js";
import { Logs } from "./logs.jsx";
import { PodUsage } from "./pod_usage.jsx";
import { getJSON } from "./request.js";
import { podHref, tabs } from "./route.js";
import { Sentence } from "./sentence.jsx";
import { Status } from "./status.jsx";
import { findPod } from "./store.js";
import { TerminalTab } from "./terminal.jsx";
import { toneOf } from "./tone.js";
import { Waterfall } from "./waterfall.jsx";
import { YAML } from "./yaml.jsx";

const titles = { overview: "Overview", logs: "Logs", terminal: "Terminal", yaml: "YAML" };

export function PodView({ namespace, name, tab, container }) {
  const { store } = useContext(Live);
  const { pods, detail, connection } = useLive();
  const live = connection.state === "live";
  const heading = useRef(null);

  useEffect(() => {
    document.title = `${name} · Swiftlet`;
    heading.current.focus({ preventScroll: true });
  }, [name]);

  // The stream has no history: it is read whenever the stream begins.
  useEffect(() => {
    if (!live) return;
    const abort = new AbortController();
    getJSON(`api/pods/${encodeURIComponent(namespace)}/${encodeURIComponent(name)}`, abort.signal)
      .then((d) => store.receive("detail", d))
      .catch(() => {}); // The stream says whether the pod exists.
    return () => abort.abort();
  }, [live, namespace, name]);

  const row = detail?.row ?? findPod(pods, namespace, name);
  const gone = row == null && (detail === null || pods != null);
  return (
    <main id="main" class={`pod page ${tab === "overview" ? "" : "fill"}`} tabIndex={-1}>
      <nav class="crumbs" aria-label="Position"><a href="#/pods">Pods</a> <span aria-hidden="true">/</span> <span>{namespace}</span></nav>
      <div class="title">
        <h1 ref={heading} tabIndex={-1}>{name}</h1>
        {row && <Status tone={toneOf(row)}>{row.phase}</Status>}
      </div>
      {row && <Facts row={row} />}
      {gone ? <p class="empty">No pod of this name is on the node{detail === null ? " any more" : ""}. <a href="#/pods">All pods</a></p> : (
        <>
          <Tabs namespace={namespace} name={name} tab={tab} />
          <div role="tabpanel" id="panel" class="panel" aria-labelledby={`tab-${tab}`}>
            <Panel tab={tab} detail={detail} row={row} namespace={namespace} name={name} container={container} />
          </div>
        </>
      )}
    </main>
  );
}

function Panel({ tab, detail, row, namespace, name, container }) {
  if (!detail) return <p class="empty">Reading the pod…</p>;
  const of = { namespace, name, containers: detail.containers ?? [], chosen: container };
  if (tab === "logs") return <Logs {...of} />;
  if (tab === "terminal") return <TerminalTab {...of} />;
  if (tab === "yaml") return <YAML text={detail.yaml} name={name} />;
  return (
    <>
      {detail.report && <Sentence report={detail.report} tone={toneOf(row)} />}
      {detail.report && <Waterfall steps={detail.report.steps ?? []} omitted={detail.report.omitted} />}
      <Containers {...of} />
      <PodUsage containers={of.containers} />
      <Events events={detail.events ?? []} />
    </>
  );
}

function Facts({ row }) {
  const now = useNow(1000);
  const created = millis(row.created);
  const facts = [
    ["Ready", row.ready],
    ["Age", created == null ? "–" : <span title={clock(created, now)}>{age((now - created) / 1000)}</span>],
    ["Restarts", row.restarts],
    ["IP", row.ip || "–"],
  ];
  return <dl class="facts">{facts.map(([term, value]) => <div key={term}><dt>{term}</dt><dd>{value}</dd></div>)}</dl>;
}

function Tabs({ namespace, name, tab }) {
  const key = (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    const next = tabs[(tabs.indexOf(tab) + step + tabs.length) % tabs.length];
    location.hash = podHref(namespace, name, next);
    document.getElementById(`tab-${next}`).focus();
  };
  return (
    <div role="tablist" class="tabs" aria-label="About this pod" onKeyDown={key}>
      {tabs.map((t) => (
        <a key={t} role="tab" id={`tab-${t}`} aria-selected={t === tab} aria-controls="panel" tabIndex={t === tab ? 0 : -1} href={podHref(namespace, name, t)}>{titles[t]}</a>
      ))}
    </div>
  );
}
