import "./logs.css";
import { useEffect, useRef, useState } from "preact/hooks";
import { useSetting } from "./hooks.js";
import { Icon } from "./icon.jsx";
import { readLog } from "./log_stream.js";
import { find, mark } from "./log_search.js";
import { createLogView } from "./log_view.js";
import { Picker } from "./picker.jsx";

export function Logs({ namespace, name, containers, chosen }) {
  const [picked, setPicked] = useState(chosen);
  const container = containers.find((c) => c.name === picked) ?? containers.find((c) => c.kind === "app") ?? containers[0];
  const [previous, setPrevious] = useState(false);
  const [follow, setFollow] = useState(true);
  const [wrap, setWrap] = useSetting("wrap", "yes");
  const [times, setTimes] = useSetting("times", "no");
  const [state, setState] = useState("");
  const [dropped, setDropped] = useState(0);
  const scroller = useRef(null);
  const view = useRef(null);
  const search = useSearch(view);

  useEffect(() => {
    view.current = createLogView(scroller.current);
    view.current.onChange = (n) => {
      setDropped(n);
      search.refresh();
    };
    return () => view.current.close();
  }, []);

  // A container that was restarted has another log.
  useEffect(() => {
    if (!container) return;
    const of = { namespace, name, container: container.name };
    return readLog(of, { previous, follow }, { lines: (l) => view.current.add(l), state: setState, restart: () => view.current.clear() });
  }, [namespace, name, container?.name, previous, follow, previous ? 0 : container?.started]);

  return (
    <div class="pane">
      <div class="toolbar">
        <Picker containers={containers} value={container?.name} onChange={setPicked} />
        <label class="search">
          <Icon name="search" />
          <span class="hidden">Search the log</span>
          <input type="search" placeholder="Search" value={search.text} onInput={(e) => search.setText(e.target.value)} onKeyDown={search.key} spellcheck={false} autocomplete="off" />
          <span class="found muted" role="status">{search.words}</span>
          <button class="button icon-button" aria-label="Previous match" disabled={!search.count} onClick={() => search.go(-1)}><Icon name="up" /></button>
          <button class="button icon-button" aria-label="Next match" disabled={!search.count} onClick={() => search.go(1)}><Icon name="down" /></button>
        </label>
        <div class="toggles" role="group" aria-label="What is shown">
          <Toggle on={follow && !previous} disabled={previous} set={setFollow}>Follow</Toggle>
          <Toggle on={previous} disabled={!previous && !container?.restarts} set={setPrevious}>Previous</Toggle>
          <Toggle on={times === "yes"} set={(on) => setTimes(on ? "yes" : "no")}>Times</Toggle>
          <Toggle on={wrap === "yes"} set={(on) => setWrap(on ? "yes" : "no")}>Wrap</Toggle>
        </div>
      </div>
      <div class={`code log ${wrap === "yes" ? "wrap" : ""} ${times === "yes" ? "times" : ""}`} ref={scroller} role="log" aria-live="off" aria-label={`Log of container ${container?.name}`} tabIndex={0} />
      <div class="pane-foot">
        <span role="status">{state}</span>
        {dropped > 0 && <span class="muted">{dropped.toLocaleString()} older lines were dropped</span>}
        <span class="grow" />
        <button class="button" onClick={() => view.current.end()}>To the end</button>
      </div>
    </div>
  );
}

function Toggle({ on, set, disabled, children }) {
  return <button class="toggle" aria-pressed={on} disabled={disabled} onClick={() => set(!on)}>{children}</button>;
}

/** The search of a log: its matches, and the current one of them. */
function useSearch(view) {
  const [text, setText] = useState("");
  const [shown, setShown] = useState({ count: 0, current: -1 });
  const ranges = useRef([]);
  const current = useRef(null);
  const wanted = useRef("");
  const pending = useRef(0);

  const show = (range) => {
    current.current = range;
    mark(ranges.current, range);
    setShown({ count: ranges.current.length, current: ranges.current.indexOf(range) });
  };
  const search = () => {
    ranges.current = view.current ? find(view.current.lines(), wanted.current) : [];
  };
  useEffect(() => {
    wanted.current = text;
    search();
    show(null);
  }, [text]);
  useEffect(() => () => {
    clearTimeout(pending.current);
    mark([], null);
  }, []);

  const go = (step) => {
    const count = ranges.current.length;
    if (!count) return;
    const at = ranges.current.indexOf(current.current);
    const range = ranges.current[at < 0 ? (step > 0 ? 0 : count - 1) : (at + step + count) % count];
    range.startContainer.parentElement.scrollIntoView({ block: "center" });
    show(range);
  };
  return {
    text, setText, go,
    count: shown.count,
    words: !text ? "" : shown.current >= 0 ? `${shown.current + 1} of ${shown.count}` : shown.count === 1 ? "1 match" : `${shown.count} matches`,
    key: (event) => {
      if (event.key === "Enter") go(event.shiftKey ? -1 : 1);
      if (event.key === "Escape") setText("");
    },
    /** Searches again, a moment after lines were added. The current match stays the current one. */
    refresh() {
      if (!wanted.current || pending.current) return;
      pending.current = setTimeout(() => {
        pending.current = 0;
        const was = current.current;
        search();
        show(ranges.current.find((r) => was && r.startContainer === was.startContainer && r.startOffset === was.startOffset) ?? null);
      }, 300);
    },
  };
}
