import { useContext } from "preact/hooks";
import { Live, useLive, useNow } from "./hooks.js";

/** The state of the event stream, beside the navigation. */
export function ConnectionState() {
  const { connection } = useLive();
  const words = { live: "Live", connecting: "Connecting", lost: "Not connected", refused: "No access" };
  return <span class={`connection ${connection.state}`} role="status">{words[connection.state]}</span>;
}

/** What is wrong with the connection, and when it is tried again. */
export function ConnectionBanner() {
  const { connection } = useLive();
  const { tryNow } = useContext(Live);
  const now = useNow();
  if (connection.state === "refused") {
    return (
      <div class="banner" role="alert">
        <p>The agent does not accept this session any more. <span class="muted">On the node, <code>swiftlet ui</code> prints a new link.</span></p>
        <button class="button" onClick={tryNow}>Try again</button>
      </div>
    );
  }
  if (connection.state !== "lost") return null;
  const seconds = Math.max(0, Math.ceil((connection.retryAt - now) / 1000));
  return (
    <div class="banner">
      <p><span role="alert">The connection to the agent is lost; what you see is from before. </span><span class="muted">{seconds ? `Next try in ${seconds} s.` : "Trying now."}</span></p>
      <button class="button" onClick={tryNow}>Try now</button>
    </div>
  );
}
