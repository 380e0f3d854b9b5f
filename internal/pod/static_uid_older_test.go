package pod

import (
	"path/filepath"
	"testing"

	"k8s.io/apimachinery/pkg/types"
)

// The expected values were computed by the reference kubelets v1.36.3 and v1.35.4 from the same files.
func TestStaticUIDMatchesOlderReference(t *testing.T) {
	for file, want := range map[string][]types.UID{
		"minimal.yaml":    {"78c3100282efcb0f0a1da22801499c8b", "dc0307c28ed66fb9de4b2c67ddb02bfb"},
		"apiserver.yaml":  {"4d135cd224e4b1f620591a2b0bba6cb3", "9eaba1667dd5e7d1662d211344551bf3"},
		"everything.yaml": {"c062b15433e5b3dc65a6f6e724567856", "359bb1d3f6337beb98658545e6cc5200"},
	} {
		for i, older := range want {
			p := readPod(t, filepath.Join("testdata/static", file))
			MakeStatic(p, Origin{Source: SourceFile, Location: "/etc/kubernetes/manifests/a.yaml", NodeName: "node-1"},
				func(uid types.UID) bool { return uid == older })
			if p.UID != older {
				t.Errorf("%s: uid %s while %s of release %d before ours runs", file, p.UID, older, i+1)
			}
		}
	}
}

// TestStaticUIDOfRunningPod: a pod that runs under our own UID keeps it, even if an older one is there as well.
func TestStaticUIDOfRunningPod(t *testing.T) {
	p := readPod(t, "testdata/static/minimal.yaml")
	MakeStatic(p, Origin{Source: SourceFile, Location: "/etc/kubernetes/manifests/a.yaml", NodeName: "node-1"}, func(types.UID) bool { return true })
	if current := types.UID("ed62b8af92b2b55efdb9a840ecc1af7e"); p.UID != current {
		t.Errorf("uid %s, want %s", p.UID, current)
	}
}
