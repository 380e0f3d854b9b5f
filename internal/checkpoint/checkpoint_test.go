package checkpoint

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

type state struct {
	CPUs map[string]string `json:"cpus"`
	N    int               `json:"n"`
}

var sample = state{CPUs: map[string]string{"a/b": "0-3", "<&>": "4"}, N: 7}

func TestWriteThenRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state")
	for _, want := range []state{sample, {N: 8}} {
		if err := Write(path, want); err != nil {
			t.Fatal(err)
		}
		var got state
		if err := Read(path, &got); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	}
	entries, _ := os.ReadDir(filepath.Dir(path))
	if len(entries) != 1 {
		t.Errorf("temporary files left behind: %v", entries)
	}
}

// Every proper prefix of a good file is what a crash in a non-atomic write would leave.
func TestReadOfTruncatedFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state")
	if err := Write(path, sample); err != nil {
		t.Fatal(err)
	}
	whole, _ := os.ReadFile(path)
	for n := range len(whole) {
		if err := os.WriteFile(path, whole[:n], 0o600); err != nil {
			t.Fatal(err)
		}
		var got state
		if err := Read(path, &got); !errors.Is(err, ErrTorn) {
			t.Errorf("%d of %d bytes: %v, want ErrTorn", n, len(whole), err)
		}
		if diff := cmp.Diff(state{}, got); diff != "" {
			t.Errorf("torn file was decoded: %s", diff)
		}
	}
}

func TestReadOfCorruptFile(t *testing.T) {
	for name, c := range map[string]struct {
		content string
		want    error
	}{
		"other JSON state":  {`{"policyName":"none","checksum":1353318690}`, ErrTorn},
		"other JSON object": {`{"hello":"world"}`, ErrTorn},
		"zeros":             {"\x00\x00\x00\x00", ErrTorn},
		"edited data":       {`{"checksum":"` + sum([]byte(`{"n":1}`)) + `","data":{"n":2}}`, ErrChecksum},
		"reformatted":       {`{"checksum":"` + sum([]byte(`{"n":1}`)) + `","data":{"n": 1}}`, ErrChecksum},
		"missing file":      {"", ErrMissing},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "state")
			if c.content != "" {
				if err := os.WriteFile(path, []byte(c.content), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			var got state
			if err := Read(path, &got); !errors.Is(err, c.want) {
				t.Errorf("got %v, want %v", err, c.want)
			}
		})
	}
}

func TestReadReturnsOtherErrorsUnchanged(t *testing.T) {
	err := Read(t.TempDir(), &state{}) // a directory
	if err == nil || errors.Is(err, ErrMissing) || errors.Is(err, ErrTorn) {
		t.Errorf("got %v, want the plain error", err)
	}
}

func TestFailedWriteKeepsOldContent(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state")
	if err := Write(path, sample); err != nil {
		t.Fatal(err)
	}
	before, _ := os.ReadFile(path)
	if err := Write(path, func() {}); err == nil {
		t.Fatal("a function was encoded")
	}
	after, _ := os.ReadFile(path)
	if !bytes.Equal(before, after) {
		t.Error("a failed write changed the file")
	}
}

func TestConcurrentWriters(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state")
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			s := state{N: i, CPUs: map[string]string{fmt.Sprint(i): fmt.Sprint(i)}}
			if err := Write(path, s); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	var got state
	if err := Read(path, &got); err != nil {
		t.Fatal(err)
	}
	if got.CPUs[fmt.Sprint(got.N)] != fmt.Sprint(got.N) {
		t.Errorf("two writers mixed: %+v", got)
	}
}

func TestRemove(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state")
	if err := Write(path, sample); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := Remove(path); err != nil {
			t.Fatal(err)
		}
	}
	if err := Read(path, &state{}); !errors.Is(err, ErrMissing) {
		t.Errorf("got %v, want ErrMissing", err)
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(`{"checksum":"x","data":{}}`))
	f.Add([]byte(`{"checksum":"` + sum([]byte(`{"n":1}`)) + `","data":{"n":1}}`))
	f.Add([]byte(`{}`))
	f.Fuzz(func(t *testing.T, content []byte) {
		path := filepath.Join(t.TempDir(), "state")
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		var got, again state
		if Read(path, &got) != nil {
			return
		}
		if err := Write(path, got); err != nil {
			t.Fatal(err)
		}
		if err := Read(path, &again); err != nil || !cmp.Equal(got, again) {
			t.Errorf("%q read as %+v, then as %+v: %v", content, got, again, err)
		}
	})
}
