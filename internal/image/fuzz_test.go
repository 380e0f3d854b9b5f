package image

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/utils/clock"
)

// FuzzName: a name that is accepted has a repository, and is complete.
func FuzzName(f *testing.F) {
	for _, name := range []string{"busybox", "r.io:5000/a/b:tag", "a@sha256:" + strings.Repeat("a", 64), "a:", "..", "[::1]:5000/a"} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		repository, complete, _, err := parseName(name)
		if err != nil {
			return
		}
		if repository == "" || !strings.HasPrefix(complete, name) {
			t.Errorf("%q: repository %q, complete %q", name, repository, complete)
		}
		if _, again, _, err := parseName(complete); err != nil || again != complete {
			t.Errorf("%q: the complete name %q becomes %q, %v", name, complete, again, err)
		}
		(&Keyring{}).Lookup(repository)
	})
}

// FuzzRecord: a damaged record of a pull is an error, another image's record is none.
func FuzzRecord(f *testing.F) {
	f.Add([]byte(`{"kind":"ImagePulledRecord","imageRef":"sha256:a","credentialMapping":{"r.io/a":{"nodePodsAccessible":true}}}`))
	f.Add([]byte(`{"imageRef":"sha256:b"}`))
	f.Add([]byte("null"))
	f.Fuzz(func(t *testing.T, content []byte) {
		r := &records{pulled: t.TempDir(), clock: clock.RealClock{}}
		if err := os.WriteFile(filepath.Join(r.pulled, recordFileName("sha256:a")), content, 0o600); err != nil {
			t.Fatal(err)
		}
		record, err := r.find("sha256:a")
		if err == nil && record != nil && record.ImageRef != "sha256:a" {
			t.Errorf("record of %q", record.ImageRef)
		}
	})
}
