package bed

import (
	"os"
	"path/filepath"
	"testing"
)

func TestLockIsHeldOnceAndEndsWithItsHolder(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	lock := func() *os.File {
		t.Helper()
		file, err := tryLock(path)
		if err != nil {
			t.Fatal(err)
		}
		return file
	}
	first := lock()
	if first == nil {
		t.Fatal("a free lock was not given")
	}
	if lock() != nil {
		t.Error("the lock was given twice")
	}
	first.Close()
	second := lock()
	if second == nil {
		t.Fatal("the lock was not given after its holder left")
	}
	defer second.Close()
	os.Remove(path) // as a holder does when it leaves
	third := lock()
	if third == nil {
		t.Fatal("a lock whose file was removed still counts")
	}
	third.Close()
}

func TestAddressesOfBedsDoNotMeet(t *testing.T) {
	seen := map[string]int{}
	for n := range maxSites {
		s := newSite(n)
		for _, name := range []string{s.bridge(), s.gateway(), s.loopback(), s.podCIDR(2), s.dir} {
			if other, ok := seen[name]; ok {
				t.Errorf("beds %d and %d share %s", other, n, name)
			}
			seen[name] = n
		}
	}
}
