import { FitAddon } from "@xterm/addon-fit";
import { Terminal } from "@xterm/xterm";
import * as frames from "./exec_frames.js";
import { kubeletURL } from "./request.js";
import { color, onThemeChange } from "./theme.jsx";

const colors = ["black", "red", "green", "yellow", "blue", "magenta", "cyan", "white"];

/** Runs the command in the container, until the function that it returns is called. The state is reported in words. */
export function openTerminal(element, of, command, state) {
  const terminal = new Terminal({ cursorBlink: !matchMedia("(prefers-reduced-motion: reduce)").matches, fontFamily: "ui-monospace, Menlo, Consolas, monospace", fontSize: 13, scrollback: 5000, screenReaderMode: true, theme: theme() });
  const fit = new FitAddon();
  terminal.loadAddon(fit);
  element.replaceChildren();
  terminal.open(element);
  fit.fit();
  terminal.focus();
  // Tab belongs to the program, so the way out is another key.
  terminal.attachCustomKeyEventHandler((event) => {
    if (event.type !== "keydown" || event.key !== "Escape" || !event.ctrlKey || !event.shiftKey) return true;
    document.querySelector('[role=tab][aria-selected="true"]')?.focus();
    return false;
  });

  const url = kubeletURL("exec", of, [...command.map((c) => ["command", c]), ["input", "1"], ["output", "1"], ["tty", "1"]]);
  url.protocol = url.protocol === "https:" ? "wss:" : "ws:";
  const socket = new WebSocket(url, frames.protocol);
  socket.binaryType = "arraybuffer";
  let opened = false, ended = "", closed = false;
  const send = (message) => socket.readyState === WebSocket.OPEN && socket.send(message);

  socket.onopen = () => {
    opened = true;
    state("Connected");
    send(frames.resize(terminal.cols, terminal.rows));
  };
  socket.onmessage = ({ data }) => {
    const message = frames.read(data);
    if (message.channel === frames.channel.stdout || message.channel === frames.channel.stderr) terminal.write(message.data);
    else if (message.channel === frames.channel.error) ended = frames.outcome(message.data);
  };
  socket.onclose = () => {
    if (closed) return;
    const words = ended || (opened ? "the connection is lost" : "the agent did not accept the connection");
    state(words[0].toUpperCase() + words.slice(1));
    terminal.write(`\r\n\x1b[2m[${words}]\x1b[0m\r\n`);
    terminal.options.disableStdin = true;
    terminal.options.cursorBlink = false;
  };
  terminal.onData((text) => send(frames.stdin(text)));
  terminal.onResize(({ cols, rows }) => send(frames.resize(cols, rows)));
  const resize = new ResizeObserver(() => fit.fit());
  resize.observe(element);
  const stop = onThemeChange(() => (terminal.options.theme = theme()));
  return () => {
    closed = true;
    stop();
    resize.disconnect();
    socket.close();
    terminal.dispose();
    element.replaceChildren();
  };
}

function theme() {
  const result = { background: color("code-bg"), foreground: color("code-text"), cursor: color("accent"), cursorAccent: color("code-bg"), selectionBackground: color("selection") };
  colors.forEach((name, i) => {
    result[name] = color(`ansi-${i}`);
    result[`bright${name[0].toUpperCase()}${name.slice(1)}`] = color(`ansi-${i + 8}`);
  });
  return result;
}
