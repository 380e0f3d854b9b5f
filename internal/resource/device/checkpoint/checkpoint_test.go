package checkpoint

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// A checkpoint of the reference kubelet is read, and written again without any change.
func TestReferenceFile(t *testing.T) {
	const path = "testdata/reference.json"
	entries, registered, err := Read(path)
	if err != nil {
		t.Fatal(err)
	}
	if len(entries) != 2 || entries[0].DeviceIDs[WithoutNUMA][0] != "a" || len(registered) != 3 {
		t.Errorf("read %+v and %v", entries, registered)
	}
	again := filepath.Join(t.TempDir(), "again")
	if err := Write(again, entries, registered); err != nil {
		t.Fatal(err)
	}
	want, _ := os.ReadFile(path)
	if got, _ := os.ReadFile(again); !bytes.Equal(got, bytes.TrimSpace(want)) {
		t.Errorf("wrote %s\nread  %s", got, want)
	}
}

func TestEmptyCheckpoint(t *testing.T) {
	path := filepath.Join(t.TempDir(), "c")
	if err := Write(path, nil, map[string][]string{}); err != nil {
		t.Fatal(err)
	}
	// As the reference kubelet writes it.
	const want = `{"Data":{"PodDeviceEntries":null,"RegisteredDevices":{}},"Checksum":3467439661}`
	if got, _ := os.ReadFile(path); string(got) != want {
		t.Errorf("wrote %s, want %s", got, want)
	}
}

func TestInvalidCheckpoints(t *testing.T) {
	whole, err := os.ReadFile("testdata/reference.json")
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		content []byte
		want    error
	}{
		"missing":    {nil, ErrMissing},
		"empty":      {[]byte{}, ErrInvalid},
		"truncated":  {whole[:len(whole)/2], ErrInvalid},
		"modified":   {bytes.Replace(whole, []byte(`"c"`), []byte(`"d"`), 1), ErrChecksum},
		"other JSON": {[]byte(`{"v1":1}`), ErrChecksum},
	} {
		path := filepath.Join(t.TempDir(), "c")
		if c.content != nil {
			if err := os.WriteFile(path, c.content, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if _, _, err := Read(path); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
}

func FuzzRead(f *testing.F) {
	whole, err := os.ReadFile("testdata/reference.json")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(whole)
	f.Fuzz(func(t *testing.T, content []byte) {
		path := filepath.Join(t.TempDir(), "c")
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		entries, registered, err := Read(path)
		if err != nil {
			return
		}
		if err := Write(path, entries, registered); err != nil {
			t.Fatal(err)
		}
		if _, _, err := Read(path); err != nil {
			t.Errorf("cannot read a rewritten checkpoint: %v", err)
		}
	})
}
