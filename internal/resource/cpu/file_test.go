package cpu

import (
	"strings"
	"testing"
)

// The file of a kubelet with the policy none, known from every node of the world.
func TestSumOfOldFile(t *testing.T) {
	const known = `{"policyName":"none","defaultCpuSet":"","checksum":1353318690}`
	policy, s, err := decode([]byte(known))
	if err != nil || policy != None || s.Shared.Size() != 0 {
		t.Errorf("%s: %q, %+v, %v", known, policy, s, err)
	}
	if _, _, err := decode([]byte(strings.Replace(known, "690", "691", 1))); err == nil {
		t.Error("a wrong checksum was accepted")
	}
}
