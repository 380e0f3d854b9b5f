package e2e

import (
	"bufio"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"swiftlet/test/bed"
	"swiftlet/test/klogparse"
)

// TestLogs: every record in the log of a kubelet has klog's form, and a pod's way is in it at the
// verbosities that operators know.
func TestLogs(t *testing.T) {
	t.Parallel()
	node := bareNode(t, "node-logs")
	space := namespace(t)
	startKubelet(t, node, "logging: {format: json, verbosity: 4}")
	p := sleeper("web", node.Name())
	p.Spec.Containers[0].ReadinessProbe = &corev1.Probe{ProbeHandler: corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"true"}}}, PeriodSeconds: 1}
	p = create(t, space, p)
	awaitPod(t, space, "web", timeout, ready)
	first := readLog(t, node, klogparse.JSON, func(records []klogparse.Record) string {
		return missing(records, space+"/web", string(p.UID), []logged{
			{"Kubelet version", 0, []string{"kubeletVersion=v1.37.1"}},
			{"Effective KubeletConfiguration", 0, []string{"config"}},
			{"SyncLoop ADD", 2, []string{"source=api", "pods=[<pod>]"}},
			{"SyncLoop (PLEG): event for pod", 2, []string{"pod=<pod>", "event.ID=<uid>", "event.Type=ContainerStarted"}},
			{"SyncLoop (probe)", 1, []string{"pod=<pod>", "probe=readiness", "status=ready"}},
			{"Probe succeeded", 3, []string{"pod=<pod>", "podUID=<uid>", "probeType=Readiness", "containerName=" + p.Spec.Containers[0].Name}},
			{"Observed pod startup duration", 0, []string{"pod=<pod>", "podStartSLOduration", "podStartE2EDuration", "podCreationTimestamp"}},
			{"Event occurred", 3, []string{"object=<pod>", "kind=Pod", "reason=Started", "type=Normal"}},
		})
	})
	checkLevels(t, first)

	if err := node.StopKubelet(); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(node.Log("kubelet"), 0); err != nil {
		t.Fatal(err)
	}
	startKubelet(t, node, "logging: {format: text, verbosity: 2}")
	if err := client().CoreV1().Pods(space).Delete(t.Context(), "web", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	awaitPod(t, space, "web", timeout, gone)
	records := readLog(t, node, klogparse.Text, func(records []klogparse.Record) string {
		return missing(records, space+"/web", string(p.UID), []logged{
			{"SyncLoop DELETE", -1, []string{"source=api", "pods=[<pod>]"}},
			{"Killing container with a grace period", -1, []string{"pod=<pod>", "podUID=<uid>", "containerName=" + p.Spec.Containers[0].Name, "containerID", "gracePeriod"}},
			{"SyncLoop (PLEG): event for pod", -1, []string{"pod=<pod>", "event.ID=<uid>", "event.Type=ContainerDied"}},
			{"SyncLoop REMOVE", -1, []string{"source=api", "pods=[<pod>]"}},
		})
	})
	for _, r := range records {
		if r.Message == "Event occurred" || r.Message == "Probe succeeded" {
			t.Errorf("verbosity 2 logs %q", r.Message)
		}
	}
}

// logged is a record that a log must have: its message, verbosity, and key=value pairs or keys.
type logged struct {
	message   string
	verbosity int
	values    []string
}

// readLog parses the whole log of the kubelet until it is complete.
func readLog(t *testing.T, node *bed.Box, parse func(string) ([]klogparse.Record, error), incomplete func([]klogparse.Record) string) (records []klogparse.Record) {
	t.Helper()
	eventually(t, timeout, func() string {
		text, err := os.ReadFile(node.Log("kubelet"))
		if err != nil {
			t.Fatal(err)
		}
		whole := string(text[:strings.LastIndexByte(string(text), '\n')+1])
		if records, err = parse(whole); err != nil {
			t.Fatalf("log of %s: %v", kubelet, err)
		}
		return incomplete(records)
	})
	t.Logf("%d records of %s", len(records), kubelet)
	return records
}

func missing(records []klogparse.Record, pod, uid string, wanted []logged) string {
	names := strings.NewReplacer("<pod>", pod, "<uid>", uid)
	for _, want := range wanted {
		found := slices.ContainsFunc(records, func(r klogparse.Record) bool {
			return r.Message == want.message && r.Verbosity == want.verbosity && !slices.ContainsFunc(want.values, func(pair string) bool {
				return !has(r, names.Replace(pair))
			})
		})
		if !found {
			return names.Replace("the log has no record " + want.message + " " + strings.Join(want.values, " "))
		}
	}
	return ""
}

// has reports whether a record has a key=value pair, or a key. An object of JSON is namespace/name, as in
// text.
func has(r klogparse.Record, pair string) bool {
	key, want, valued := strings.Cut(pair, "=")
	outer, inner, nested := strings.Cut(key, ".")
	value, ok := r.Values[outer]
	if fields, isObject := value.(map[string]any); nested && isObject {
		value, ok = fields[inner]
	}
	return ok && (!valued || flat(value) == want)
}

func flat(value any) string {
	switch value := value.(type) {
	case string:
		return value
	case []any:
		var all []string
		for _, v := range value {
			all = append(all, flat(v))
		}
		return "[" + strings.Join(all, " ") + "]"
	case map[string]any:
		return flat(value["namespace"]) + "/" + flat(value["name"])
	}
	return ""
}

// checkLevels checks the form of values that are common to most records.
func checkLevels(t *testing.T, records []klogparse.Record) {
	t.Helper()
	for _, r := range records {
		if r.Verbosity > 4 {
			t.Errorf("verbosity 4 logs %+v", r)
		}
		if pod, ok := r.Values["pod"]; ok {
			if object, isObject := pod.(map[string]any); !isObject || object["name"] == nil {
				t.Errorf("the pod is not an object in %+v", r)
			}
		}
	}
}

// TestUserAgent: the API server's audit log names the kubelet and its version.
func TestUserAgent(t *testing.T) {
	t.Parallel()
	node := steadyNode(t)
	want := "kubelet/v1.37.1 (linux/" + runtime.GOARCH + ") kubernetes/"
	eventually(t, timeout, func() string {
		file, err := os.Open(cluster.ControlPlane.AuditLog())
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		entries := bufio.NewScanner(file)
		entries.Buffer(nil, 1<<20)
		for entries.Scan() {
			text := entries.Text()
			if !strings.Contains(text, `"username":"system:node:`+node.Name()+`"`) {
				continue
			}
			_, agent, _ := strings.Cut(text, `"userAgent":"`)
			agent, _, _ = strings.Cut(agent, `"`)
			t.Logf("%s sends %s", kubelet, agent)
			if !strings.HasPrefix(agent, want) {
				t.Fatalf("the user agent does not begin with %s", want)
			}
			return ""
		}
		return "the audit log has no request of " + node.Name()
	})
}
