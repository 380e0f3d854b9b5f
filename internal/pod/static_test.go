package pod

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"
)

func readPod(t *testing.T, path string) *v1.Pod {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return parsePod(t, string(data))
}

func parsePod(t *testing.T, text string) *v1.Pod {
	t.Helper()
	p := &v1.Pod{}
	if err := yaml.UnmarshalStrict([]byte(text), p); err != nil {
		t.Fatal(err)
	}
	return p
}

// The expected values were computed by the reference kubelet v1.37.1 from the same files.
func TestStaticUIDMatchesReference(t *testing.T) {
	for file, want := range map[string]types.UID{
		"minimal.yaml":    "ed62b8af92b2b55efdb9a840ecc1af7e",
		"apiserver.yaml":  "b6835cd848d26a3c9e5f91fdffd7de26",
		"everything.yaml": "2f7db107283ec3b73bec4b012a44dbe8",
	} {
		t.Run(file, func(t *testing.T) {
			p := readPod(t, filepath.Join("testdata/static", file))
			MakeStatic(p, Origin{Source: SourceFile, Location: "/etc/kubernetes/manifests/a.yaml", NodeName: "node-1"}, nil)
			if p.UID != want {
				t.Errorf("uid %s, want %s", p.UID, want)
			}
		})
	}
}

func TestStaticUIDDependsOnContentAndOrigin(t *testing.T) {
	file := Origin{Source: SourceFile, Location: "/m/a.yaml", NodeName: "node-1"}
	uid := func(image string, o Origin) types.UID {
		p := parsePod(t, "{metadata: {name: a}, spec: {containers: [{name: c, image: "+image+"}]}}")
		MakeStatic(p, o, nil)
		return p.UID
	}
	base := uid("x", file)
	if again := uid("x", file); again != base {
		t.Errorf("same pod, other uid: %s and %s", base, again)
	}
	for name, other := range map[string]types.UID{
		"image": uid("y", file),
		"path":  uid("x", Origin{Source: SourceFile, Location: "/m/b.yaml", NodeName: "node-1"}),
		"node":  uid("x", Origin{Source: SourceFile, Location: "/m/a.yaml", NodeName: "node-2"}),
		"http":  uid("x", Origin{Source: SourceHTTP, Location: "/m/a.yaml", NodeName: "node-1"}),
	} {
		if other == base {
			t.Errorf("uid does not depend on %s", name)
		}
	}
}

func TestMakeStatic(t *testing.T) {
	for name, tc := range map[string]struct {
		source       Source
		pod, expects string
	}{
		"file": {SourceFile, `
metadata: {name: web, uid: "1"}
spec: {containers: [{name: c, image: busybox}]}`, `
metadata:
  name: web-node-1
  namespace: default
  uid: "1"
  annotations: {kubernetes.io/config.hash: "1", kubernetes.io/config.source: file}
spec:
  nodeName: node-1
  tolerations: [{operator: Exists, effect: NoExecute}]
status: {phase: Pending}`},
		"http, with a namespace and annotations of its own": {SourceHTTP, `
metadata: {name: web, uid: "1", namespace: kube-system, annotations: {a: b}}
spec: {containers: [{name: c, image: busybox}]}`, `
metadata:
  name: web-node-1
  namespace: kube-system
  uid: "1"
  annotations: {a: b, kubernetes.io/config.hash: "1", kubernetes.io/config.source: http}
spec:
  nodeName: node-1
status: {phase: Pending}`},
		"toleration already there": {SourceFile, `
metadata: {name: web, uid: "1"}
spec: {tolerations: [{operator: Exists, effect: NoExecute}]}`, `
metadata:
  name: web-node-1
  namespace: default
  uid: "1"
  annotations: {kubernetes.io/config.hash: "1", kubernetes.io/config.source: file}
spec:
  nodeName: node-1
  tolerations: [{operator: Exists, effect: NoExecute}]
status: {phase: Pending}`},
	} {
		t.Run(name, func(t *testing.T) {
			got := parsePod(t, tc.pod)
			MakeStatic(got, Origin{Source: tc.source, Location: "/m/web.yaml", NodeName: "Node-1"}, nil)
			want := parsePod(t, tc.expects)
			got.Spec = v1.PodSpec{NodeName: got.Spec.NodeName, Tolerations: got.Spec.Tolerations} // defaults have their own test
			want.Spec.NodeName = "Node-1"
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}
