package standalone

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// digestOf is a digest for each name.
func digestOf(name string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(name))) }

// contentStore has the files of containerd's.
type contentStore struct {
	t   *testing.T
	dir string
}

func (c contentStore) write(path, content string) {
	c.t.Helper()
	file := filepath.Join(c.dir, path)
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		c.t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		c.t.Fatal(err)
	}
}

func (c contentStore) writing(digest string, size int) {
	c.write("ingest/"+digest+"/ref", "k8s.io/7/layer-sha256:"+digestOf(digest))
	c.write("ingest/"+digest+"/data", strings.Repeat("x", size))
}

func (c contentStore) done(digest string, size int) {
	if err := os.RemoveAll(filepath.Join(c.dir, "ingest", digest)); err != nil {
		c.t.Fatal(err)
	}
	c.write("blobs/sha256/"+digestOf(digest), strings.Repeat("x", size))
}

func (c contentStore) manifest(digest string, layers ...string) {
	for i, l := range layers {
		name, size, _ := strings.Cut(l, "=")
		layers[i] = fmt.Sprintf(`{"digest":"sha256:%s","size":%s}`, digestOf(name), size)
	}
	c.write("blobs/sha256/"+digestOf(digest), `{"schemaVersion":2,"layers":[`+strings.Join(layers, ",")+`]}`)
}

// Pulls are shown as bytes of bytes once the manifest is there, without layers of earlier images.
func TestPulls(t *testing.T) {
	paths := Paths{root: t.TempDir(), run: "/r", bundle: "/b"}
	p := newPulls(paths)
	store := contentStore{t, p.store}
	now := time.Now().Add(time.Hour) // what is on disk is older
	old := now.Add(-time.Hour)
	store.done("base", 500_000)
	store.manifest("m0", "base=500000")
	for i, step := range []struct {
		do   func()
		past time.Duration
		want string // empty for no pull
	}{
		{do: func() {}},
		{do: func() { store.writing("a", 100_000) }, want: "pulling images: 0.1 MB"},
		{do: func() { store.manifest("m1", "base=500000", "a=1000000", "b=2000000") }, want: "pulling images: 0.1 MB of 3.0 MB"},
		{do: func() { store.writing("a", 600_000) }, past: time.Second, want: "pulling images: 0.6 MB of 3.0 MB, 0.6 MB/s"},
		{do: func() { store.done("a", 1_000_000); store.touch("a", now); store.writing("b", 500_000) }, past: 2 * time.Second, want: "pulling images: 1.5 MB of 3.0 MB, 0.5 MB/s"},
		{do: func() { store.manifest("m2", "c=4000000"); store.writing("c", 0) }, want: "pulling images: 1.5 MB of 7.0 MB, 0.5 MB/s"},
		{do: func() { store.done("b", 2_000_000); store.done("c", 4_000_000) }, past: time.Second},
		{do: func() { store.writing("d", 300_000) }, want: "pulling images: 0.3 MB"},
	} {
		step.do()
		store.touch("base", old)
		now = now.Add(step.past)
		progress, running := p.read(now)
		if running != (step.want != "") || running && progress.String() != step.want {
			t.Errorf("step %d: running %t, %q, want %q", i, running, progress, step.want)
		}
	}
}

func (c contentStore) touch(digest string, at time.Time) {
	c.t.Helper()
	if err := os.Chtimes(filepath.Join(c.dir, "blobs/sha256", digestOf(digest)), at, at); err != nil {
		c.t.Fatal(err)
	}
}

// TestPullsOfHostileManifest: digests and sizes of a registry are neither paths nor less than nothing.
func TestPullsOfHostileManifest(t *testing.T) {
	p := newPulls(Paths{root: t.TempDir(), run: "/r", bundle: "/b"})
	store := contentStore{t, p.store}
	now := time.Now().Add(-time.Minute)
	store.writing("a", 100_000)
	store.write("outside", "a file beside the blobs")
	store.write("blobs/sha256/"+digestOf("m"), fmt.Sprintf(`{"layers":[{"digest":"sha256:%s","size":1000000},
		{"digest":"sha256:../../outside","size":700000000},{"digest":"sha512:%[1]s","size":800000000},{"digest":"sha256:%s","size":-900000},
		{"digest":"sha256:%s","size":9223372036854775807},{"digest":"sha256:%s","size":9223372036854775807}]}`,
		digestOf("a"), digestOf("b"), digestOf("c"), digestOf("d")))
	progress, running := p.read(now)
	if got := progress.String(); !running || got != "pulling images: 0.1 MB of 1.0 MB" {
		t.Errorf("running %t, %q", running, got)
	}
	for digest := range p.layers {
		if len(digest) != 64 {
			t.Errorf("%q is taken for a digest", digest)
		}
	}
}
