package userns

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// FuzzSubordinate: the output of getsubids is a range of ids or an error.
func FuzzSubordinate(f *testing.F) {
	f.Add("0: kubelet 65536 7208960\n")
	f.Add("0: kubelet -1 99999999999999999999\n")
	f.Add("0: a 1 1\n1: a 2 2\n")
	f.Fuzz(func(t *testing.T, text string) {
		first, count, err := parseSubordinate(strings.NewReader(text))
		if err == nil && (first < 0 || count < 0) {
			t.Errorf("%q: %d ids from %d", text, count, first)
		}
	})
}

// FuzzMapping: a damaged file of a pod never maps ids of the host or of another pod.
func FuzzMapping(f *testing.F) {
	f.Add([]byte(`{"uidMappings":[{"hostId":131072,"containerId":0,"length":65536}],"gidMappings":[{"hostId":131072,"containerId":0,"length":65536}]}`))
	f.Add([]byte(`{"uidMappings":[],"gidMappings":[{}]}`))
	f.Add([]byte(`{"uidMappings":[{"hostId":0,"length":65536}],"gidMappings":[{"hostId":0,"length":65536}]}`))
	f.Fuzz(func(t *testing.T, content []byte) {
		root := t.TempDir()
		cfg := Config{RootDir: root, First: Size, Count: 4 * Size, PerPod: Size}
		dir := filepath.Join(root, "pods", "uid")
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, mappingFile), content, 0o600); err != nil {
			t.Fatal(err)
		}
		r, err := New(cfg, slog.New(slog.DiscardHandler))
		if err != nil {
			return
		}
		if first, known := r.ranges["uid"]; known && first < Size {
			t.Errorf("%q maps ids from %d, which are the host's own", content, first)
		}
	})
}
