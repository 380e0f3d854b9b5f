package bench

import (
	"bytes"
	"context"
	"fmt"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// 200 probed containers. Few pods with many containers start and end faster than 200 pods; a probe
// costs the same.
const (
	probedPods       = 20
	probedContainers = 10
)

func execProbes(ctx context.Context, t *trial) error {
	return t.probes(ctx, "probes_exec", func(c *corev1.Container, _ string) {
		*c = shellContainer(c.Name, waitScript)
		c.ReadinessProbe = &corev1.Probe{
			PeriodSeconds: 1, TimeoutSeconds: 10, FailureThreshold: 100,
			ProbeHandler: corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"true"}}},
		}
	})
}

func httpProbes(ctx context.Context, t *trial) error {
	return t.probes(ctx, "probes_http", func(c *corev1.Container, pod string) { c.ReadinessProbe = t.httpProbe(pod) })
}

// probes runs pods whose containers are all probed once a second and measures the CPU. On a machine
// that cannot run as many, the rate is lower, and the cost of one probe still compares.
func (t *trial) probes(ctx context.Context, row string, add func(c *corev1.Container, pod string)) error {
	k := t.kubelet()
	pods := newPods("probed", t.number(probedPods))
	for _, p := range pods {
		p.Spec.Containers = nil
		for i := range probedContainers {
			c := pauseContainer(fmt.Sprint("c", i))
			add(&c, p.Name)
			p.Spec.Containers = append(p.Spec.Containers, c)
		}
	}
	if _, err := k.start(ctx, pods); err != nil {
		return err
	}
	if err := sleep(ctx, 2*time.Second); err != nil {
		return err
	}
	before, err := k.probeCount(ctx)
	if err != nil {
		return err
	}
	began := time.Now()
	used, err := t.cluster.cpuOf(t.subject, func() error { return sleep(ctx, t.window(15*time.Second)) })
	if err != nil {
		return err
	}
	seconds := time.Since(began).Seconds()
	after, err := k.probeCount(ctx)
	if err != nil {
		return err
	}
	t.record(row+"_agent_cpu", used.agent.Seconds()/seconds)
	t.record(row+"_runtime_cpu", used.runtime.Seconds()/seconds)
	t.record(row+"_rate", (after-before)/seconds)
	if row == "probes_exec" && after > before {
		t.record(row+"_agent_each", 1000*used.agent.Seconds()/(after-before))
		t.record(row+"_runtime_each", 1000*used.runtime.Seconds()/(after-before))
	}
	_, err = k.delete(ctx, pods)
	return err
}

// probeCount is the number of probes that the kubelet has made, by its own metrics.
func (k *kubelet) probeCount(ctx context.Context) (float64, error) {
	body, err := k.get(ctx, "/metrics/probes")
	if err != nil {
		return 0, err
	}
	return sumOf(body, "prober_probe_total")
}

// sumOf adds all series of a metric in the text format.
func sumOf(body []byte, metric string) (float64, error) {
	sum := 0.0
	for line := range bytes.Lines(body) {
		if !bytes.HasPrefix(line, []byte(metric+"{")) {
			continue
		}
		fields := bytes.Fields(line[bytes.LastIndexByte(line, '}')+1:])
		if len(fields) == 0 {
			return 0, fmt.Errorf("parse metric %s: %q", metric, line)
		}
		value, err := strconv.ParseFloat(string(fields[0]), 64)
		if err != nil {
			return 0, fmt.Errorf("parse metric %s: %w", metric, err)
		}
		sum += value
	}
	return sum, nil
}
