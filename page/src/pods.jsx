import "./pods.css";
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { age, bytes, clock, cpu, millis } from "./format.js";
import { useLive, useNow, useSize } from "./hooks.js";
import { Icon } from "./icon.jsx";
import { compare, matches } from "./pod_order.js";
import { podHref } from "./route.js";
import { Status } from "./status.jsx";
import { isDown, toneOf } from "./tone.js";
import { positions, reveal, visible } from "./virtual.js";

const columns = [
  { id: "name", title: "Pod" },
  { id: "status", title: "Status" },
  { id: "ready", title: "Ready" },
  { id: "restarts", title: "Restarts" },
  { id: "cpu", title: "CPU", descending: true },
  { id: "memory", title: "Memory", descending: true },
  { id: "ip", title: "IP" },
  { id: "age", title: "Age" },
];

/** Heights of rows, which the style sheet repeats: a pod that is not up has its sentence below. */
const wide = { up: 40, down: 64 };
const narrow = { up: 60, down: 100 };

// What the reader has chosen stays while other views are open.
const chosen = { search: "", namespace: "", notUp: false, sort: { by: "status", descending: false }, active: null, top: 0 };

export function PodsView() {
  const { pods } = useLive();
  const [search, setSearch] = useChosen("search");
  const [namespace, setNamespace] = useChosen("namespace");
  const [notUp, setNotUp] = useChosen("notUp");
  const [sort, setSort] = useChosen("sort");
  const field = useRef(null);
  const list = useRef(null);

  // Before the view is painted: whoever sees the field may press the key.
  useLayoutEffect(() => {
    document.title = "Pods · Swiftlet";
    const focusSearch = (event) => {
      if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey || /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName)) return;
      event.preventDefault();
      field.current?.focus();
      field.current?.select();
    };
    addEventListener("keydown", focusSearch);
    return () => removeEventListener("keydown", focusSearch);
  }, []);

  const all = pods ? [...pods.values()] : [];
  const namespaces = [...new Set(all.map((row) => row.namespace))].sort();
  if (namespace && !namespaces.includes(namespace)) namespaces.push(namespace);
  const searched = all.filter((row) => (!namespace || row.namespace === namespace) && matches(row, search));
  const down = searched.filter((row) => isDown(row)).length;
  const rows = searched.filter((row) => !notUp || isDown(row)).sort(compare(sort));

  const searchKey = (event) => {
    if (event.key === "ArrowDown" || event.key === "Enter") {
      event.preventDefault();
      list.current?.focus();
    } else if (event.key === "Escape") {
      setSearch("");
      field.current.blur();
    }
  };

  return (
    <main id="main" class="pods" tabIndex={-1}>
      <h1 class="hidden">Pods</h1>
      <div class="toolbar">
        <label class="search">
          <Icon name="search" />
          <span class="hidden">Search pods</span>
          <input ref={field} type="search" placeholder="Search by name, status, IP, reason" value={search} onInput={(e) => setSearch(e.target.value)} onKeyDown={searchKey} spellcheck={false} autocomplete="off" />
          <kbd aria-hidden="true">/</kbd>
        </label>
        <label class="select">
          <span class="hidden">Namespace</span>
          <select value={namespace} onChange={(e) => setNamespace(e.target.value)}>
            <option value="">All namespaces</option>
            {namespaces.map((n) => <option key={n} value={n}>{n}</option>)}
          </select>
        </label>
        <div class="segments" role="group" aria-label="Which pods">
          <button aria-pressed={!notUp} onClick={() => setNotUp(false)}>All <span class="count">{searched.length}</span></button>
          <button aria-pressed={notUp} onClick={() => setNotUp(true)}>Not up <span class="count">{down}</span></button>
        </div>
      </div>
      {pods ? <Table rows={rows} total={all.length} sort={sort} setSort={setSort} list={list} /> : <p class="empty">Waiting for the list of pods…</p>}
      <p class="hidden" role="status">{pods && `${rows.length} of ${all.length} pods`}</p>
    </main>
  );
}

function useChosen(name) {
  const [value, setValue] = useState(chosen[name]);
  return [value, (next) => setValue((chosen[name] = next))];
}

function Table({ rows, total, sort, setSort, list }) {
  const now = useNow(1000);
  const [view, size] = useSize();
  const [top, setTop] = useChosen("top");
  const [active, setActive] = useChosen("active");
  const heights = size.width && size.width < 720 ? narrow : wide;
  const at = useMemo(() => positions(rows.map((row) => (row.sentence && isDown(row) ? heights.down : heights.up))), [rows, heights]);
  const current = rows.findIndex((row) => row.uid === active);
  const [first, last] = visible(at, top, size.height);

  useEffect(() => {
    view.current.scrollTop = chosen.top;
  }, []);

  const go = (index) => {
    const to = Math.max(0, Math.min(rows.length - 1, index));
    if (!rows[to]) return;
    setActive(rows[to].uid);
    view.current.scrollTop = reveal(at, to, view.current.scrollTop, size.height);
  };
  const key = (event) => {
    const page = Math.max(1, Math.floor(size.height / heights.up) - 1);
    const steps = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -Infinity, End: Infinity };
    if (event.target.closest("[role=columnheader]") || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key in steps) {
      event.preventDefault();
      go(current < 0 ? (steps[event.key] === Infinity ? Infinity : 0) : current + steps[event.key]);
    } else if (event.key === "Enter" && current >= 0) {
      location.hash = podHref(rows[current].namespace, rows[current].name);
    }
  };

  return (
    <div class="table" role="grid" aria-label="Pods" aria-rowcount={rows.length + 1} aria-colcount={columns.length} tabIndex={0} ref={list}
      aria-activedescendant={current >= first && current < last ? `row-${active}` : undefined}
      onKeyDown={key} onFocus={(e) => e.target === e.currentTarget && current < 0 && go(0)}>
      <div role="rowgroup">
        <div role="row" class="row head" aria-rowindex={1}>
          {columns.map((c) => <Head key={c.id} column={c} sort={sort} setSort={setSort} />)}
        </div>
      </div>
      <div class="scroll" role="rowgroup" ref={view} onScroll={(e) => setTop(e.currentTarget.scrollTop)}>
        {rows.length === 0 && <p class="empty">{total === 0 ? "No pods run on this node." : "No pod matches."}</p>}
        <div role="presentation" style={{ height: `${at[rows.length]}px` }}>
          {rows.slice(first, last).map((row, i) => (
            <Row key={row.uid} row={row} index={first + i} top={at[first + i]} active={row.uid === active} now={now} onActive={setActive} />
          ))}
        </div>
      </div>
    </div>
  );
}

function Head({ column, sort, setSort }) {
  const sorted = sort.by === column.id;
  const toggle = () => setSort({ by: column.id, descending: sorted ? !sort.descending : Boolean(column.descending) });
  return (
    <div role="columnheader" class={`cell ${column.id}`} aria-sort={sorted ? (sort.descending ? "descending" : "ascending") : "none"}>
      <button onClick={toggle}>{column.title}{sorted && <Icon name={sort.descending ? "down" : "up"} />}</button>
    </div>
  );
}

function Row({ row, index, top, active, now, onActive }) {
  const href = podHref(row.namespace, row.name);
  const tone = toneOf(row);
  const open = (event) => {
    onActive(row.uid);
    if (!event.target.closest("a") && !getSelection().toString()) location.hash = href;
  };
  const cell = (id, ...content) => <div role="gridcell" class={`cell ${id}`}>{content}</div>;
  const restarted = millis(row.lastRestart);
  return (
    <div role="row" id={`row-${row.uid}`} class={`row ${active ? "active" : ""} ${row.sentence && isDown(row) ? "down" : ""}`} aria-rowindex={index + 2} aria-selected={active}
      style={{ transform: `translateY(${top}px)` }} onClick={open}>
      {cell("name", <a class="clip" href={href} tabIndex={-1} title={`${row.namespace}/${row.name}`}>{row.name}</a>, <span class="namespace clip">{row.namespace}</span>)}
      {cell("status", <Status tone={tone}>{row.phase}</Status>)}
      {cell("ready", row.ready)}
      {cell("restarts", row.restarts, restarted && <span class="muted"> {age((now - restarted) / 1000)} ago</span>)}
      {cell("cpu", cpu(row.cpu))}
      {cell("memory", bytes(row.memory))}
      {cell("ip", row.ip || "–")}
      {cell("age", <span title={clock(row.created, now)}>{age((now - millis(row.created)) / 1000)}</span>)}
      {row.sentence && isDown(row) && <div role="gridcell" class={`cell sentence clip ${tone}`} title={row.sentence}>{row.sentence}</div>}
    </div>
  );
}
