package cpu

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
)

// The reference kubelet writes this file under the policy none.
func TestLegacyStateFile(t *testing.T) {
	const known = `{"policyName":"none","defaultCpuSet":"","checksum":1353318690}`
	policy, s, err := decode([]byte(known))
	if err != nil || policy != None || s.Shared.Size() != 0 {
		t.Errorf("%s: %q, %+v, %v", known, policy, s, err)
	}
	if _, _, err := decode([]byte(strings.Replace(known, "690", "691", 1))); err == nil {
		t.Error("a wrong checksum was accepted")
	}
}

// The reference kubelet v1.37.1 wrote this file with CPU 1 of two allocated to a container. It
// is encoded again without any change, including both checksums.
func TestReferenceStateFile(t *testing.T) {
	raw, err := os.ReadFile("testdata/cpu_manager_state")
	if err != nil {
		t.Fatal(err)
	}
	policy, s, err := decode(raw)
	if err != nil || policy != Static || s.Shared.String() != "0" || s.Containers["69f88446-1ee8-4153-bb86-623018c5d969"]["c"].String() != "1" {
		t.Fatalf("%q, %+v, %v", policy, s, err)
	}
	ours, err := encode(policy, s)
	if err != nil || string(ours) != string(raw) {
		t.Errorf("ours\n%s\nreference's\n%s\n%v", ours, raw, err)
	}
	// An older release reads only the legacy format, with its own checksum.
	var f stateFile
	if err := json.Unmarshal(ours, &f); err != nil {
		t.Fatal(err)
	}
	old, err := json.Marshal(f.legacyContent)
	if err != nil {
		t.Fatal(err)
	}
	if _, again, err := decode(old); err != nil || again.Shared.String() != "0" {
		t.Errorf("%s: %+v, %v", old, again, err)
	}
}
