package certificate

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"k8s.io/client-go/util/certificate"
	testclock "k8s.io/utils/clock/testing"
)

var storeTime = time.Date(2026, 1, 2, 15, 4, 5, 0, time.Local)

func storeIn(t *testing.T, s fileStore) *fileStore {
	t.Helper()
	s.prefix, s.clock, s.log = "kubelet-client", testclock.NewFakePassiveClock(storeTime), slog.New(slog.DiscardHandler)
	made, err := newFileStore(s)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func TestFileStoreLayout(t *testing.T) {
	s := storeIn(t, fileStore{dir: filepath.Join(t.TempDir(), "pki")})
	if _, err := s.Current(); !errors.Is(err, errNotStored) {
		t.Errorf("empty store: %v, want %v", err, errNotStored)
	}
	cert, key := newSigner(t).newPair("n", time.Hour)
	updated, err := s.Update(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	dated := filepath.Join(s.dir, "kubelet-client-2026-01-02-15-04-05.pem")
	if target, err := os.Readlink(filepath.Join(s.dir, "kubelet-client-current.pem")); err != nil || target != dated {
		t.Errorf("current is a link to %q (%v), want %q", target, err, dated)
	}
	if info, err := os.Stat(dated); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("certificate file: %v %v", info, err)
	}
	if content, err := os.ReadFile(dated); err != nil || !bytes.Equal(content, append(cert, key...)) {
		t.Errorf("content %s (%v), want certificate and key", content, err)
	}
	if current, err := s.Current(); err != nil || !bytes.Equal(current.Leaf.Raw, updated.Leaf.Raw) {
		t.Errorf("current certificate differs from the stored one: %v", err)
	}
	if entries, err := os.ReadDir(s.dir); err != nil || len(entries) != 2 {
		t.Errorf("%d files (%v), want 2", len(entries), err)
	}
}

// The reference kubelet, which uses client-go's store, and ours replace each other.
func TestFileStoreReadsAndIsReadByClientGo(t *testing.T) {
	ours := storeIn(t, fileStore{dir: t.TempDir()})
	theirs, err := certificate.NewFileStore("kubelet-client", ours.dir, ours.dir, "", "")
	if err != nil {
		t.Fatal(err)
	}
	s := newSigner(t)
	for _, step := range []struct {
		name   string
		write  Store
		readBy Store
	}{{"client-go's first", theirs, ours}, {"then ours", ours, theirs}, {"then client-go's again", theirs, ours}} {
		written, err := step.write.Update(s.newPair("n", time.Hour))
		if err != nil {
			t.Fatalf("%s: %v", step.name, err)
		}
		if read, err := step.readBy.Current(); err != nil || !bytes.Equal(read.Leaf.Raw, written.Leaf.Raw) {
			t.Errorf("%s: the other store reads another certificate: %v", step.name, err)
		}
	}
}

// client-go's store removes the old link before it renames the new one.
func TestFileStoreCompletesInterruptedUpdate(t *testing.T) {
	s := storeIn(t, fileStore{dir: t.TempDir()})
	if _, err := s.Update(newSigner(t).newPair("n", time.Hour)); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(s.path("current"), s.path("updated")); err != nil {
		t.Fatal(err)
	}
	if _, err := storeIn(t, fileStore{dir: s.dir}).Current(); err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(s.path("updated")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the interrupted update is still there: %v", err)
	}
}

func TestFileStoreOrder(t *testing.T) {
	s := newSigner(t)
	dir := t.TempDir()
	given := filepath.Join(dir, "given.pem")
	write := func(cert, key, name string) {
		certPEM, keyPEM := s.newPair(name, time.Hour)
		if err := errors.Join(os.WriteFile(cert, certPEM, 0o600), os.WriteFile(key, keyPEM, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	store := storeIn(t, fileStore{dir: dir, certFile: given, keyFile: given + ".key"})
	steps := []struct {
		want string
		add  func()
	}{
		{"early", func() {
			write(filepath.Join(dir, "kubelet-client.crt"), filepath.Join(dir, "kubelet-client.key"), "early")
		}},
		{"given", func() { write(given, given+".key", "given") }},
		{"current", func() {
			if _, err := store.Update(s.newPair("current", time.Hour)); err != nil {
				t.Fatal(err)
			}
		}},
	}
	for _, step := range steps {
		step.add()
		if got, err := store.Current(); err != nil || got.Leaf.Subject.CommonName != "system:node:"+step.want {
			t.Errorf("%v (%v), want that of %s", got, err, step.want)
		}
	}
}

func TestFileStoreRejects(t *testing.T) {
	s := newSigner(t)
	cert, key := s.newPair("n", time.Hour)
	_, otherKey := s.newPair("n", time.Hour)
	for name, pair := range map[string][2][]byte{
		"no certificate":      {nil, key},
		"no key":              {cert, nil},
		"key of another pair": {cert, otherKey},
	} {
		store := storeIn(t, fileStore{dir: t.TempDir()})
		if _, err := store.Update(pair[0], pair[1]); err == nil {
			t.Errorf("%s: stored", name)
		}
		if entries, _ := os.ReadDir(store.dir); len(entries) > 0 {
			t.Errorf("%s: left %v", name, entries)
		}
	}
	// A file of an administrator in place of the link.
	store := storeIn(t, fileStore{dir: t.TempDir()})
	if err := os.WriteFile(store.path("current"), append(bytes.Clone(cert), key...), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Update(s.newPair("n", time.Hour)); err == nil {
		t.Error("a file was replaced by a link")
	}
	if _, err := store.Current(); err != nil {
		t.Error(err)
	}
}
