package architecture

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// linkedPackages returns the packages of the program.
func linkedPackages(t *testing.T) []string {
	t.Helper()
	list := exec.CommandContext(t.Context(), "go", "list", "-deps", "-tags", "grpcnotrace", module+"/cmd/swiftlet")
	list.Env = append(os.Environ(), "CGO_ENABLED=0")
	output, err := list.Output()
	if err != nil {
		t.Fatalf("list the packages of swiftlet: %v", err)
	}
	found := strings.Fields(string(output))
	if !slices.Contains(found, "k8s.io/client-go/rest") {
		t.Fatalf("%d packages without k8s.io/client-go/rest: the analysis does not work", len(found))
	}
	return found
}

func TestUnlinkedPackages(t *testing.T) {
	for _, linked := range linkedPackages(t) {
		for _, rule := range unlinked {
			if linked == rule.path || strings.HasPrefix(linked, rule.path+"/") {
				t.Errorf("the program links %s: %s", linked, rule.why)
			}
		}
		if group, ok := strings.CutPrefix(linked, "k8s.io/api/"); ok && !slices.Contains(linkedGroups, group) {
			t.Errorf("the program links the API group %s, which is not in linkedGroups", group)
		}
	}
}
