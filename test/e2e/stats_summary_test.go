package e2e

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"swiftlet/test/bed"
)

// summaryOf reads a node's Summary API.
func summaryOf(t *testing.T, node *bed.Box, query string) (text string, summary statsapi.Summary) {
	t.Helper()
	code, text := requestNode(t, node, "GET", "/stats/summary"+query)
	if code != 200 {
		t.Fatalf("/stats/summary: %d %s", code, text)
	}
	if err := json.Unmarshal([]byte(text), &summary); err != nil {
		t.Fatal(err)
	}
	return text, summary
}

// awaitStats polls a pod's statistics until check returns "": the reference samples pods every ten to fifteen
// seconds and volumes every minute.
func awaitStats(t *testing.T, node *bed.Box, space, name string, check func(*statsapi.PodStats) string) *statsapi.PodStats {
	t.Helper()
	missing := ""
	// Volume usage is cached for a minute; another test may have read it while the pod was still writing.
	for deadline := time.Now().Add(timeoutFor(2*time.Minute, 3*time.Minute)); time.Now().Before(deadline); time.Sleep(500 * time.Millisecond) {
		_, summary := summaryOf(t, node, "")
		missing = "the pod is not in the summary"
		for i := range summary.Pods {
			p := &summary.Pods[i]
			if p.PodRef.Namespace != space || p.PodRef.Name != name {
				continue
			}
			if missing = check(p); missing == "" {
				return p
			}
		}
	}
	t.Fatal(missing)
	return nil
}

// shapeOf adds the paths and types of all fields of a JSON value to fields.
func shapeOf(value any, at string, fields map[string]bool) {
	switch v := value.(type) {
	case map[string]any:
		for key, inner := range v {
			shapeOf(inner, at+"."+key, fields)
		}
	case []any:
		for _, inner := range v {
			shapeOf(inner, at+"[]", fields)
		}
	default:
		fields[fmt.Sprintf("%s %T", at, v)] = true
	}
}

// summaryShape returns the fields of a Summary, with the pods of one namespace only.
func summaryShape(t *testing.T, text, space string) map[string]bool {
	t.Helper()
	var summary map[string]any
	if err := json.Unmarshal([]byte(text), &summary); err != nil {
		t.Fatal(err)
	}
	pods, _ := summary["pods"].([]any)
	summary["pods"] = slices.DeleteFunc(pods, func(p any) bool {
		return p.(map[string]any)["podRef"].(map[string]any)["namespace"] != space
	})
	fields := map[string]bool{}
	shapeOf(summary, "", fields)
	return fields
}

// TestSummaryShape compares the fields of the Summary with the recording, without pods of other tests, which
// have other kinds of volumes.
func TestSummaryShape(t *testing.T) {
	t.Parallel()
	node := steadyNode(t)
	space := namespace(t)
	startPod(t, space, measured("measured", node.Name()))
	awaitStats(t, node, space, "measured", complete)
	compareSummary(t, node, space, "", "stats-summary.json")
}

// compareSummary compares the fields of the Summary with a recording.
func compareSummary(t *testing.T, node *bed.Box, space, query, file string) {
	t.Helper()
	text, _ := summaryOf(t, node, query)
	want := summaryShape(t, string(testdata(t, file)), "golden")
	if diff := difference(want, summaryShape(t, text, space)); diff != "" {
		t.Errorf("the fields of /stats/summary%s differ (- recorded, + now):\n%s", query, diff)
	}
}

// complete checks that all statistics of a measured pod are present.
func complete(p *statsapi.PodStats) string {
	switch {
	case p.CPU == nil || p.Memory == nil || p.Network == nil || p.ProcessStats == nil || p.EphemeralStorage == nil || p.Swap == nil:
		return fmt.Sprintf("statistics are missing: %+v", p)
	case len(p.VolumeStats) != 2:
		return fmt.Sprintf("%d volumes, want emptyDir and token, without hostPath", len(p.VolumeStats))
	case len(p.Containers) != 1 || p.Containers[0].Rootfs == nil || p.Containers[0].Rootfs.UsedBytes == nil || p.Containers[0].Logs == nil:
		return fmt.Sprintf("containers: %+v", p.Containers)
	}
	return ""
}

// TestSummaryValues checks the values of the Summary.
func TestSummaryValues(t *testing.T) {
	t.Parallel()
	node := steadyNode(t)
	space := namespace(t)
	startPod(t, space, measured("measured", node.Name()))
	p := awaitStats(t, node, space, "measured", func(p *statsapi.PodStats) string {
		if missing := complete(p); missing != "" {
			return missing
		}
		c := &p.Containers[0]
		switch m := c.Memory; {
		// The page cache of the written file is inactive.
		case *m.UsageBytes < 3_000_000 || *m.WorkingSetBytes > *m.UsageBytes-2_000_000:
			return fmt.Sprintf("memory usage %d, working set %d", *m.UsageBytes, *m.WorkingSetBytes)
		case m.AvailableBytes == nil || *m.AvailableBytes != 64<<20-*m.WorkingSetBytes:
			return fmt.Sprintf("available memory %v of 64 MiB, working set %d", m.AvailableBytes, *m.WorkingSetBytes)
		case *c.Logs.UsedBytes == 0 || *c.Logs.InodesUsed != 1:
			return fmt.Sprintf("logs: %d bytes in %d files", *c.Logs.UsedBytes, *c.Logs.InodesUsed)
		case *p.ProcessStats.ProcessCount != 2: // the shell and sleep
			return fmt.Sprintf("%d processes, want 2", *p.ProcessStats.ProcessCount)
		case *p.EphemeralStorage.UsedBytes < 3_000_000:
			return fmt.Sprintf("ephemeral storage: %d bytes, want more than the volume's", *p.EphemeralStorage.UsedBytes)
		}
		for _, v := range p.VolumeStats {
			if v.Name == "scratch" && (*v.UsedBytes < 3_000_000 || *v.UsedBytes > 3_100_000 || *v.InodesUsed != 2) {
				return fmt.Sprintf("scratch space: %d bytes in %d files, want 3 MB in 2", *v.UsedBytes, *v.InodesUsed)
			}
		}
		return ""
	})
	if p.Network.Name != "eth0" || len(p.Network.Interfaces) != 1 {
		t.Errorf("network: %+v", p.Network)
	}
	_, usage := summaryOf(t, node, "?only_cpu_and_memory=true")
	if n := usage.Node; n.Network != nil || n.Fs != nil || *n.Memory.WorkingSetBytes == 0 || len(usage.Pods) == 0 {
		t.Errorf("summary with only_cpu_and_memory: %+v", n)
	}
}

// cpuBurner returns a pod that uses its whole CPU limit of 200m.
func cpuBurner(name, node string) *corev1.Pod {
	pod := scripted(name, node, "while :; do :; done")
	pod.Spec.Containers[0].Resources.Requests = corev1.ResourceList{"cpu": resource.MustParse("10m")}
	pod.Spec.Containers[0].Resources.Limits = corev1.ResourceList{"cpu": resource.MustParse("200m")}
	return pod
}

// TestCPUUsage checks the CPU usage of a busy pod, as a total and as a rate.
func TestCPUUsage(t *testing.T) {
	t.Parallel()
	node := steadyNode(t)
	space := namespace(t)
	startPod(t, space, cpuBurner("burner", node.Name()))
	awaitStats(t, node, space, "burner", func(p *statsapi.PodStats) string {
		for what, cpu := range map[string]*statsapi.CPUStats{"pod": p.CPU, "container": p.Containers[0].CPU} {
			if cpu == nil || cpu.UsageNanoCores == nil || cpu.UsageCoreNanoSeconds == nil {
				return what + ": there is no CPU usage"
			}
			rate, total := time.Duration(*cpu.UsageNanoCores), time.Duration(*cpu.UsageCoreNanoSeconds)
			// On a busy machine it may get less than its limit, but never more.
			if total < time.Second || rate < 50*time.Millisecond || rate > 250*time.Millisecond {
				return fmt.Sprintf("%s: %v of CPU time, %v per second, want about 200ms", what, total, rate)
			}
		}
		return ""
	})
}
