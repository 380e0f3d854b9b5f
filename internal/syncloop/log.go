package syncloop

import (
	"context"
	"log/slog"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"

	"swiftlet/internal/klogfmt"
	"swiftlet/internal/pod"
)

// logChanges logs the changes of a source as the reference kubelet does: one record per operation.
func (l *Loop) logChanges(source pod.Source, changes []pod.Change) {
	if !l.deps.Log.Enabled(context.Background(), klogfmt.V2) {
		return
	}
	for _, op := range []pod.Op{pod.Add, pod.Update, pod.Delete, pod.Remove, pod.Reconcile} {
		var pods []*v1.Pod
		for _, c := range changes {
			if c.Op == op {
				pods = append(pods, c.Pod)
			}
		}
		if len(pods) == 0 {
			continue
		}
		level := klogfmt.V2
		if op == pod.Reconcile {
			level = slog.LevelDebug
		}
		l.deps.Log.Log(context.Background(), level, "SyncLoop "+strings.ToUpper(op.String()), "source", string(source), "pods", klog.KObjSlice(pods))
	}
}
