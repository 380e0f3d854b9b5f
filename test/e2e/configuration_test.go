package e2e

import (
	"os"
	"strings"
	"testing"

	"swiftlet/test/bed"
)

// TestUnknownConfigurationField: a node whose configuration file has a field of another version starts,
// and the log names the field.
func TestUnknownConfigurationField(t *testing.T) {
	t.Parallel()
	node := configuredNode(t, "stale", `{dynamicConfigDir: /etc/kubernetes/dynamic, memorySwap: {swapBehaviour: NoSwap}}`)
	log, err := os.ReadFile(node.Log("kubelet"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range map[bed.KubeletKind][]string{
		bed.Reference: {`unknown field \"dynamicConfigDir\"`, `unknown field \"memorySwap.swapBehaviour\"`},
		bed.Ours:      {"dynamicConfigDir: ignored, is not a known field", "memorySwap.swapBehaviour: ignored, is not a known field; did you mean swapBehavior?"},
	}[kubelet] {
		if !strings.Contains(string(log), want) {
			t.Errorf("the kubelet's log has no %s", want)
		}
	}
}
