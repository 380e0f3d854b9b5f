package runtime

import (
	"os"
	"path/filepath"
	"testing"

	v1 "k8s.io/api/core/v1"

	"swiftlet/internal/pod"
)

// FuzzRestore: annotations of containers, which another kubelet may have written, never prevent that they
// are stopped.
func FuzzRestore(f *testing.F) {
	f.Add("30", "5", `[{"containerPort":80}]`, `{"exec":{"command":["a"]}}`)
	f.Add("-1", "x", "{", "null")
	f.Fuzz(func(t *testing.T, grace, deletion, ports, hook string) {
		annotations := map[string]string{annotationTerminationGrace: grace, annotationDeletionGrace: deletion, annotationPorts: ports, annotationPreStop: hook}
		p := Restore(pod.Observed{Ref: pod.Ref{UID: "u"}, Containers: []pod.Container{{ID: "1", Name: "c", Annotations: annotations}, {ID: "2", Name: "c"}}})
		if len(p.Spec.Containers) != 1 || p.Spec.Containers[0].Name != "c" {
			t.Errorf("containers %+v", p.Spec.Containers)
		}
	})
}

// FuzzTerminationMessage: whatever a container writes to its file, the message is bounded.
func FuzzTerminationMessage(f *testing.F) {
	f.Add([]byte("done"), int64(4096))
	f.Add([]byte("\xff\xfe\x00"), int64(1))
	f.Fuzz(func(t *testing.T, content []byte, limit int64) {
		if limit < 0 || limit > 1<<20 {
			return
		}
		path := filepath.Join(t.TempDir(), "log")
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		tail, err := readTail(path, limit)
		if err != nil || int64(len(tail)) > limit {
			t.Errorf("%d bytes of %d with limit %d: %v", len(tail), len(content), limit, err)
		}
	})
}

// FuzzImageUser: whatever user an image names, a container that must not run as root does not.
func FuzzImageUser(f *testing.F) {
	f.Add(int64(0), "", true)
	f.Add(int64(-1), "root", false)
	f.Fuzz(func(t *testing.T, uid int64, name string, set bool) {
		user := ImageUser{Name: name}
		if set {
			user.UID = &uid
		}
		yes := true
		c := &v1.Container{Name: "c", SecurityContext: &v1.SecurityContext{RunAsNonRoot: &yes}}
		if VerifyNonRoot(&v1.Pod{}, c, user) != nil {
			return
		}
		if as, _ := user.asUser(); as == nil || as.Value <= 0 {
			t.Errorf("%+v runs as %v", user, as)
		}
	})
}
