package source

import (
	"path/filepath"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"swiftlet/internal/pod"
)

// onceThere is a runtime that has a pod only the first time it is asked for.
type onceThere struct {
	t      *testing.T
	synced chan struct{}
	pod    types.UID
}

func (r *onceThere) Synced() <-chan struct{} { return r.synced }

func (r *onceThere) Holds(uid types.UID) bool {
	select {
	case <-r.synced:
	default:
		r.t.Error("the source did not wait until the runtime was read")
	}
	if uid != r.pod {
		return false
	}
	r.pod = ""
	return true
}

// TestStaticPodOfOlderKubelet: a static pod that runs under the UID of an earlier release keeps it, even if
// the runtime loses it. A changed pod has a UID of ours.
func TestStaticPodOfOlderKubelet(t *testing.T) {
	d := newDirectory(t)
	older := olderUID(t, filepath.Join(d.path, "a.yaml"), manifestOf("a", "x"))
	r := &onceThere{t: t, synced: make(chan struct{}), pod: older}
	d.runtime = r
	d.write("a.yaml", manifestOf("a", "x"))
	d.run(d.path, nil)
	close(r.synced)
	if uid := d.expect("a=x")[0].UID; uid != older {
		t.Errorf("uid %s, want %s as the pod runs", uid, older)
	}
	d.write("a.yaml", manifestOf("a", "y"))
	if uid := d.expect("a=y")[0].UID; uid == older {
		t.Error("the changed pod has the UID of the older one")
	}
	d.write("a.yaml", manifestOf("a", "x"))
	if uid := d.expect("a=x")[0].UID; uid != older {
		t.Errorf("uid %s, want %s as before", uid, older)
	}
}

// olderUID is the UID that an earlier release gives the pod of a file: the second that MakeStatic asks for.
func olderUID(t *testing.T, file, manifest string) (older types.UID) {
	t.Helper()
	m, err := decode([]byte(manifest))
	if err != nil {
		t.Fatal(err)
	}
	asked := 0
	pod.MakeStatic(m.pods[0], pod.Origin{Source: pod.SourceFile, Location: file, NodeName: "node-1"}, func(uid types.UID) bool {
		asked++
		older = uid
		return asked == 2
	})
	return older
}
