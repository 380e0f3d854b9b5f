package probe

import (
	"context"
	"log/slog"
	"strings"

	"k8s.io/klog/v2"

	"swiftlet/internal/clip"
	"swiftlet/internal/klogfmt"
	"swiftlet/internal/pod"
)

// logOutcome logs a run as the reference kubelet does. A failure of an early run does not count.
func (p *Prober) logOutcome(a probeRun, outcome Outcome) {
	ctx := context.Background()
	level := klogfmt.V1
	if outcome.Result == pod.Passed {
		level = klogfmt.V3
	} else if a.early {
		return
	}
	if !p.deps.Log.Enabled(ctx, level) {
		return
	}
	log := p.deps.Log.With("probeType", a.state.kind.String(), pod.RefOf(a.target.Pod).Attr(), "containerName", a.target.Container.Name)
	output := clip.Text(outcome.Output, clip.Event) // as in the event
	switch {
	case outcome.Result == pod.Passed && outcome.Warning:
		log.Log(ctx, level, "Probe succeeded with a warning", "output", output)
	case outcome.Result == pod.Passed:
		log.Log(ctx, level, "Probe succeeded")
	case outcome.Result == pod.ProbeUnknown:
		log.Log(ctx, level, "Probe errored", "probeResult", "unknown", "err", output)
	default:
		log.Log(ctx, level, "Probe failed", "probeResult", "failure", "output", output)
	}
}

// logChange logs a changed result, which the sync loop handles.
func (p *Prober) logChange(a probeRun, result pod.Result) {
	status := [...]string{startup: "unhealthy", liveness: "unhealthy", readiness: "not ready"}[a.state.kind]
	if result == pod.Passed {
		status = [...]string{startup: "started", liveness: "healthy", readiness: "ready"}[a.state.kind]
	}
	p.deps.Log.LogAttrs(context.Background(), klogfmt.V1, "SyncLoop (probe)", slog.String("probe", strings.ToLower(a.state.kind.String())),
		slog.String("status", status), slog.Any("pod", klog.KObj(a.target.Pod)))
}
