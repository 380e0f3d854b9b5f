package config

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestDifferences(t *testing.T) {
	before := mustLoad(t, "--max-pods=5", "--eviction-hard=memory.available<1Gi", "--manifest-url-header=a:secret")
	after := mustLoad(t, "--max-pods=6", "--eviction-hard=memory.available<2Gi", "--manifest-url-header=a:other")
	text, err := Configz(&before.Kubelet)
	if err != nil {
		t.Fatal(err)
	}
	got, err := after.Differences(text)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		`--eviction-hard: evictionHard.memory.available: changes from "1Gi" to "2Gi"`,
		"--max-pods: maxPods: changes from 5 to 6",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("differences (-want +got):\n%s", diff)
	}
	if same, err := before.Differences(text); err != nil || len(same) > 0 {
		t.Errorf("the same configuration differs: %v, %v", same, err)
	}
	if _, err := before.Differences([]byte("{")); err == nil {
		t.Error("no error for an answer that is not JSON")
	}
}

// TestDepartures: without a file, the three insecure defaults of the reference kubelet are listed, unless
// flags set them.
func TestDepartures(t *testing.T) {
	if got := mustLoad(t).Departures; len(got) != len(insecureDefaults) {
		t.Errorf("departures of the defaults: %q", got)
	}
	got := mustLoad(t, "--anonymous-auth=false", "--authorization-mode=Webhook", "--read-only-port=0", "--housekeeping-interval=1s").Departures
	if len(got) != 1 {
		t.Errorf("departures of secure flags: %q", got)
	}
}
