import { age, clock, millis } from "./format.js";
import { useNow } from "./hooks.js";
import { Icon } from "./icon.jsx";

export function Events({ events }) {
  const now = useNow(1000);
  const sorted = [...events].sort((a, b) => (millis(b.time) ?? 0) - (millis(a.time) ?? 0));
  return (
    <section class="card" aria-labelledby="events-title">
      <h2 id="events-title">Events</h2>
      {sorted.length === 0 ? <p class="empty">No events of this pod are known.</p> : (
        <ol class="events">
          {sorted.map((e, i) => (
            <li key={`${e.time} ${e.reason} ${i}`} class={e.type === "Warning" ? "warning" : ""}>
              <span class="when" title={clock(e.time, now)}>{age((now - millis(e.time)) / 1000)} ago</span>
              <span class="reason">{e.type === "Warning" && <><Icon name="warn" /><span class="hidden">Warning: </span></>}{e.reason}{e.count > 1 && <span class="tag">{e.count}×</span>}</span>
              <span class="message">{e.message}{e.object && <span class="muted"> · {e.object}</span>}</span>
            </li>
          ))}
        </ol>
      )}
    </section>
  );
}
