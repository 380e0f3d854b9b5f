package e2e

import (
	"fmt"
	"net"
	"regexp"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"swiftlet/test/bed"
)

// view normalizes the data of one run of the pods: it replaces values that are specific to the run by
// placeholders, so that two runs can be compared.
type view struct {
	node     string // address
	replaced *strings.Replacer
	pods     *regexp.Regexp // addresses
}

// recording is the view of the recordings.
var recording = view{
	node:     recordedAddress,
	replaced: strings.NewReplacer("10.96.14.208", "<service address>", "size=24580016k", "size=<allocatable>"),
	pods:     regexp.MustCompile(`\b10\.244\.1\.\d+\b`),
}

// viewOf returns the view of a run on the node. Further strings are replaced in pairs.
func viewOf(t *testing.T, node *bed.Box, replaced ...string) view {
	t.Helper()
	object := awaitNode(t, node.Name(), timeout, schedulable)
	network, _, err := net.ParseCIDR(node.PodCIDR())
	if err != nil {
		t.Fatal(err)
	}
	allocatable := fmt.Sprintf("size=%dk", object.Status.Allocatable.Memory().Value()/1024)
	return view{
		node:     node.Address(),
		replaced: strings.NewReplacer(append(replaced, allocatable, "size=<allocatable>")...),
		pods:     regexp.MustCompile(`\b` + regexp.QuoteMeta(strings.TrimSuffix(network.String(), "0")) + `\d+\b`),
	}
}

// schedulable checks that the node is ready and has no taints: a node keeps a taint for a moment after it has
// become ready.
func schedulable(node *corev1.Node) string {
	if node != nil && len(node.Spec.Taints) > 0 {
		return fmt.Sprintf("the node has taints: %v", node.Spec.Taints)
	}
	return nodeReady(corev1.ConditionTrue)(node)
}

// runSpecific matches values that are different in every run.
var runSpecific = []struct {
	what *regexp.Regexp
	word string
}{
	{regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`), "<uid>"},
	{regexp.MustCompile(`[0-9a-f]{64}`), "<id>"},
	{regexp.MustCompile(`\bkube-api-access-[a-z0-9]{5}`), "kube-api-access-<random>"},
	{regexp.MustCompile(`(/containers/[^/]+)/[0-9a-f]{8}$`), "$1/<random>"},
	{regexp.MustCompile(`\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z`), "<time>"},
	{regexp.MustCompile(`\b[A-Z][a-z]{2} [ \d]\d \d\d:\d\d\b`), "<time>"},
}

func (v view) text(text string) string {
	text = v.pods.ReplaceAllString(v.replaced.Replace(text), "<pod address>")
	for _, c := range runSpecific {
		text = c.what.ReplaceAllString(text, c.word)
	}
	return text
}

// tree normalizes every string in an object.
func (v view) tree(value any) any {
	switch inner := value.(type) {
	case map[string]any:
		for key, one := range inner {
			inner[key] = v.tree(one)
		}
	case []any:
		for i, one := range inner {
			inner[i] = v.tree(one)
		}
	case string:
		return v.text(inner)
	}
	return value
}

// status normalizes a pod's status.
func (v view) status(t *testing.T, status any) any {
	t.Helper()
	return v.tree(normalize(t, status, v.node))
}
