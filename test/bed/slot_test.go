package bed

import (
	"os"
	"path/filepath"
	"testing"
)

func TestLockHasOneHolder(t *testing.T) {
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
		t.Fatal("free lock: got none")
	}
	if lock() != nil {
		t.Error("held lock: got a second one")
	}
	first.Close()
	second := lock()
	if second == nil {
		t.Fatal("lock after its holder closed it: got none")
	}
	defer second.Close()
	os.Remove(path) // as a holder does on release
	third := lock()
	if third == nil {
		t.Fatal("lock whose file was removed: still held")
	}
	third.Close()
}

func TestSlotsShareNoNamesOrAddresses(t *testing.T) {
	seen := map[string]int{}
	for n := range maxSlots {
		s := newSlot(n)
		for _, name := range []string{s.bridge(), s.gateway(), s.loopback(), s.podCIDR(2), s.dir} {
			if other, ok := seen[name]; ok {
				t.Errorf("beds %d and %d share %s", other, n, name)
			}
			seen[name] = n
		}
	}
}
