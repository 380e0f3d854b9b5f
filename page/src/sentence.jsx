import { age, clock, millis, ordinal } from "./format.js";
import { useNow } from "./hooks.js";
import { Icon } from "./icon.jsx";

/** Why the pod is as it is: the parts of the report's sentence, read out when it changes. */
export function Sentence({ report, tone }) {
  const now = useNow(1000);
  const { where, what, text, fix, since, attempts, next } = report.cause;
  const began = millis(since);
  const nextTry = millis(next);
  return (
    <section class={`sentence-card ${tone}`} aria-label="Why">
      <Icon name={tone} />
      <div>
        <p class="sentence-text" role="status"><strong>{where}:</strong> {what}{text && <span class="quote"> ({text})</span>}</p>
        <ul class="sentence-notes">
          {began != null && <li>since {clock(began, now)}, {age((now - began) / 1000)} ago</li>}
          {nextTry != null && <li>{attempts > 1 ? `${ordinal(attempts + 1)} try` : "next try"} {nextTry > now ? `in ${age((nextTry - now + 999) / 1000)}` : "now"}</li>}
          {fix && <li>{tone === "ok" || tone === "done" ? "see" : "to fix:"} <code>{fix}</code></li>}
        </ul>
      </div>
    </section>
  );
}
