package bench

import (
	"context"
	"fmt"
	"time"

	"swiftlet/test/bed"
)

// idleRows are the rows of a kubelet that has n pods and nothing to do.
func idleRows(n int) []string {
	names := []string{"idle_cpu_%d", "idle_wakeups_%d", "rss_%d", "anon_%d"}
	if n == 60 {
		names = append(names, "file_%d")
	}
	for i := range names {
		names[i] = fmt.Sprintf(names[i], n)
	}
	return names
}

// idleEmpty measures a kubelet that was just started and has never had a pod.
func idleEmpty(ctx context.Context, t *trial) error {
	if err := t.kubelet().restart(ctx, bed.KubeletOptions{}); err != nil {
		return err
	}
	return t.idle(ctx, 0)
}

// idle measures the kubelet while nothing happens.
func (t *trial) idle(ctx context.Context, pods int) error {
	calm, window := t.window(5*time.Second), t.window(20*time.Second)
	if t.quick {
		window = min(window, 10*time.Second)
	}
	if err := sleep(ctx, calm); err != nil {
		return err
	}
	pid, err := t.kubelet().box.KubeletPID()
	if err != nil {
		return err
	}
	wokenBefore, err := wakeups(pid)
	if err != nil {
		return err
	}
	began := time.Now()
	used, err := t.cluster.cpuOf(t.subject, func() error { return sleep(ctx, window) })
	if err != nil {
		return err
	}
	woken, err := wakeups(pid)
	if err != nil {
		return err
	}
	seconds := time.Since(began).Seconds()
	resident, err := processMemory(pid)
	if err != nil {
		return err
	}
	values := map[string]float64{
		"idle_cpu_%d": used.agent.Seconds() / seconds, "idle_wakeups_%d": float64(woken-wokenBefore) / seconds,
		"rss_%d": float64(resident.rss) / 1e6, "anon_%d": float64(resident.anon) / 1e6,
	}
	if pods == 60 {
		values["file_%d"] = float64(resident.file) / 1e6
	}
	for name, value := range values {
		t.record(fmt.Sprintf(name, pods), value)
	}
	return nil
}
