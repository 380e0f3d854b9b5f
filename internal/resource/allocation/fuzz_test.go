package allocation

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
)

// FuzzOpen: a damaged file is an error, whether or not its checksum fits, or a state that is written and read
// again.
func FuzzOpen(f *testing.F) {
	f.Add(`{"entries":{"uid":{"ContainerResources":{"c":{"requests":{"cpu":"1"}}}}}}`, true)
	f.Add(`{"data":"{}","checksum":0}`, false)
	f.Add("null", true)
	f.Fuzz(func(t *testing.T, data string, fits bool) {
		text := []byte(data)
		if fits {
			var err error
			if text, err = json.Marshal(stateFile{Data: data, Checksum: uint64(checksum(data))}); err != nil {
				t.Fatal(err)
			}
		}
		path := filepath.Join(t.TempDir(), "allocated_pods_state")
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		s, err := Open(path)
		if err != nil {
			return
		}
		for uid, r := range s.pods {
			s.Note(uid, r.Resources)
		}
		if err := s.Written(t.Context()); err != nil {
			t.Fatal(err)
		}
		again, err := Open(path)
		if err != nil || len(again.pods) != len(s.pods) {
			t.Errorf("read again: %d pods, %v; want %d", len(again.pods), err, len(s.pods))
		}
	})
}
