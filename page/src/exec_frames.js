// Messages of the subprotocol v5.channel.k8s.io: a byte for the channel, then data.

export const protocol = "v5.channel.k8s.io";
export const channel = { stdin: 0, stdout: 1, stderr: 2, error: 3, resize: 4, close: 255 };

const encoder = new TextEncoder();
const decoder = new TextDecoder();

export function stdin(text) {
  return frame(channel.stdin, encoder.encode(text));
}

export function resize(columns, rows) {
  return frame(channel.resize, encoder.encode(JSON.stringify({ Width: columns, Height: rows })));
}

function frame(number, data) {
  const message = new Uint8Array(data.length + 1);
  message[0] = number;
  message.set(data, 1);
  return message;
}

/** Splits a message. */
export function read(buffer) {
  const message = new Uint8Array(buffer);
  return { channel: message[0], data: message.subarray(1) };
}

/** What the status on the error channel says: how the program ended, or why it did not begin. */
export function outcome(data) {
  let status;
  try {
    status = JSON.parse(decoder.decode(data));
  } catch {
    return "ended without a status";
  }
  if (status.status === "Success") return "the program has ended";
  const code = status.details?.causes?.find((c) => c.reason === "ExitCode")?.message;
  return code ? `the program has ended with code ${code}` : status.message || "ended without a status";
}
