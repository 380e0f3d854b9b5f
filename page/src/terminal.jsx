import "@xterm/xterm/css/xterm.css";
import { useEffect, useRef, useState } from "preact/hooks";
import { useSetting } from "./hooks.js";
import { Picker } from "./picker.jsx";

/** A program in a container, on a terminal. xterm is loaded with the first one. */
export function TerminalTab({ namespace, name, containers, chosen }) {
  const running = containers.filter((c) => c.state.toLowerCase() === "running");
  const [picked, setPicked] = useState(chosen);
  const container = running.find((c) => c.name === picked) ?? running.find((c) => c.kind === "app") ?? running[0];
  const [command, setCommand] = useSetting("command", "sh");
  const [session, setSession] = useState(0);
  const [state, setState] = useState("");
  const element = useRef(null);
  const connected = useRef(null);

  // What the session runs is what was chosen when it began.
  useEffect(() => {
    if (!session || !container) return;
    let close = () => {}, closed = false;
    setState("Connecting…");
    import("./terminal_session.js").then(({ openTerminal }) => {
      if (closed) return;
      close = openTerminal(element.current, { namespace, name, container: container.name }, command.trim().split(/\s+/), setState);
    }).catch((err) => setState(`The terminal could not be loaded: ${err.message}`));
    return () => {
      closed = true;
      close();
    };
  }, [session]);

  const connect = (event) => {
    event.preventDefault();
    connected.current = container?.name;
    setSession(session + 1);
  };
  return (
    <div class="pane">
      <form class="toolbar" onSubmit={connect}>
        {container && <Picker containers={running} value={container.name} onChange={setPicked} />}
        <label class="field"><span>Command</span><input value={command} onInput={(e) => setCommand(e.target.value)} spellcheck={false} autocomplete="off" autocapitalize="off" /></label>
        <button class="button primary" disabled={!container || !command.trim()}>{session ? "Start again" : "Start"}</button>
      </form>
      <div class="code console" ref={element} role="group" aria-label={`Terminal in container ${connected.current ?? container?.name ?? ""}`}>
        {!session && <p class="empty">{container ? "The command is run in the container, with the rights of its user." : "No container runs: a command needs one."}</p>}
      </div>
      <div class="pane-foot"><span role="status">{state}</span><span class="grow" /><span class="muted">Ctrl+Shift+Esc leaves the terminal</span></div>
    </div>
  );
}
