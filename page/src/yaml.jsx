import { useMemo, useState } from "preact/hooks";

/** The pod as the API has it, with its keys set apart. */
export function YAML({ text, name }) {
  const [copied, setCopied] = useState(false);
  const lines = useMemo(() => text.split("\n").map(parts), [text]);
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text);
      setCopied(true);
      setTimeout(() => setCopied(false), 2000);
    } catch {
      getSelection().selectAllChildren(document.getElementById("yaml"));
    }
  };
  const download = () => {
    const url = URL.createObjectURL(new Blob([text], { type: "application/yaml" }));
    Object.assign(document.createElement("a"), { href: url, download: `${name}.yaml` }).click();
    URL.revokeObjectURL(url);
  };
  return (
    <div class="pane">
      <div class="toolbar">
        <span class="grow" />
        <button class="button" onClick={copy}>{copied ? "Copied" : "Copy"}</button>
        <button class="button" onClick={download}>Download</button>
        <span class="hidden" role="status">{copied && "Copied"}</span>
      </div>
      <pre id="yaml" class="code" tabIndex={0} aria-label="YAML of the pod">
        {lines.map(([space, key, rest]) => <>{space}{key && <span class="key">{key}</span>}{rest}{"\n"}</>)}
      </pre>
    </div>
  );
}

function parts(line) {
  const match = /^(\s*(?:- )*)([\w./"-]+:)(?=\s|$)(.*)$/.exec(line);
  return match ? match.slice(1) : ["", "", line];
}
