import "uplot/dist/uPlot.min.css";
import "./plot.css";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import uPlot from "uplot";
import { bytes, clock, rate } from "./format.js";
import { color, onThemeChange } from "./theme.jsx";

const height = 150;
/** Steps of axes of bytes. */
const powersOfTwo = Array.from({ length: 50 }, (_, i) => 2 ** i);
const dashes = [[], [6, 4], [2, 3], [10, 3, 2, 3]];

/**
 * Series over time: t are unix seconds, series {name, values, limit}. Lines differ in colour and dashes. Plots with the same
 * group show the values of the same time. seconds is the least length of the time axis.
 */
export function Plot({ title, t, series, format, max, seconds, group }) {
  const element = useRef(null);
  const plot = useRef(null);
  const [cursor, setCursor] = useState(null);
  const names = series.map((s) => s.name + (s.limit != null ? "l" : "")).join("\n");
  const data = useMemo(() => [t, ...series.flatMap((s) => (s.limit == null ? [s.values] : [s.values, t.map(() => s.limit)]))], [t, series]);
  const latest = useRef(null);
  latest.current = { format, max, seconds };

  useEffect(() => {
    let colors = {};
    const readColors = () => (colors = Object.fromEntries(["plot-1", "plot-2", "plot-3", "plot-4", "muted", "line", "bad"].map((n) => [n, color(n)])));
    readColors();
    const axis = { stroke: () => colors.muted, grid: { stroke: () => colors.line, width: 1 }, ticks: { show: false }, font: "11px system-ui, sans-serif" };
    const lines = series.flatMap((s, i) => {
      const line = { label: s.name, stroke: () => colors[`plot-${(i % 4) + 1}`], width: 1.75, dash: dashes[i % 4], points: { show: false } };
      if (s.limit == null) return [line];
      return [line, { label: `${s.name}: limit`, stroke: () => colors.bad, width: 1, dash: [3, 3], points: { show: false } }];
    });
    plot.current = new uPlot({
      width: element.current.clientWidth || 300,
      height,
      legend: { show: false },
      padding: [8, 12, 0, 0],
      cursor: { sync: { key: group }, drag: { x: false, y: false }, points: { size: 6 } },
      scales: {
        x: { range: (_, from, to) => [Math.min(from ?? 0, (to ?? 0) - latest.current.seconds), to] },
        y: { range: (_, from, to) => [0, latest.current.max ?? (to > 0 ? to * 1.1 : 1)] },
      },
      axes: [
        { ...axis, space: 70, size: 26, values: (_, ticks) => ticks.map((s) => new Date(s * 1000).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", hourCycle: "h23" })) },
        { ...axis, size: 64, space: 36, ...(format === bytes || format === rate ? { incrs: powersOfTwo } : {}), values: (_, ticks) => ticks.map((v) => latest.current.format(v)) },
      ],
      series: [{}, ...lines],
      hooks: { setCursor: [(u) => setCursor(u.cursor.idx ?? null)] },
    }, data, element.current);
    const resize = new ResizeObserver(([entry]) => plot.current.setSize({ width: Math.max(160, entry.contentRect.width), height }));
    resize.observe(element.current);
    const stop = onThemeChange(() => {
      readColors();
      plot.current.redraw();
    });
    return () => {
      stop();
      resize.disconnect();
      plot.current.destroy();
    };
  }, [names]);

  useEffect(() => plot.current.setData(data), [data]);

  const at = cursor ?? t.length - 1;
  const shown = (values) => format(values[at]);
  const highest = (values) => format(values.reduce((most, v) => (v != null && v > (most ?? -Infinity) ? v : most), null));
  return (
    <figure class="plot">
      <figcaption>
        <span class="plot-title">{title}</span>
        {series.map((s, i) => (
          <span key={s.name} class="plot-value">
            {series.length > 1 && <><svg class={`key key-${(i % 4) + 1}`} viewBox="0 0 18 4" width="18" height="4" aria-hidden="true"><path d="M0 2h18" stroke-dasharray={dashes[i % 4].join(" ")} /></svg>{s.name}</>}
            <strong>{shown(s.values)}</strong>
          </span>
        ))}
        <span class="plot-time muted">{cursor != null && t[cursor] != null ? clock(t[cursor] * 1000) : ""}</span>
      </figcaption>
      <div class="plot-canvas" ref={element} role="img" aria-label={series.map((s) => `${title} ${s.name}: now ${format(s.values.at(-1))}, highest ${highest(s.values)}`).join("; ")} />
    </figure>
  );
}
