/** Use against a limit, or against what is requested where there is no limit, as a bar and in words. */
export function Meter({ title, use, request, limit, capacity, format, note }) {
  const whole = limit ?? capacity ?? request;
  const share = (n) => Math.min(100, (n / whole) * 100);
  const used = whole && use != null ? share(use) : 0;
  const bound = limit != null ? `limit ${format(limit)}` : capacity != null ? `of ${format(capacity)}` : "no limit";
  const words = [bound, request != null && `${format(request)} requested`, note].filter(Boolean).join(" · ");
  return (
    <div class="meter">
      <div class="meter-head"><span class="meter-title">{title}</span><strong>{format(use)}</strong><span class="muted">{words}</span></div>
      <div class={`meter-track ${used >= 90 ? "full" : ""}`} aria-hidden="true">
        {used > 0 && <i style={{ width: `${used}%` }} />}
        {request != null && whole !== request && <b style={{ left: `${share(request)}%` }} title={`requested: ${format(request)}`} />}
      </div>
    </div>
  );
}
