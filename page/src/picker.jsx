/** Chooses one of the pod's containers. */
export function Picker({ containers, value, onChange }) {
  return (
    <label class="select">
      <span class="hidden">Container</span>
      <select value={value} onChange={(e) => onChange(e.target.value)}>
        {containers.map((c) => <option key={c.name} value={c.name}>{c.kind === "app" ? c.name : `${c.name} (${c.kind})`}</option>)}
      </select>
    </label>
  );
}
