package userns

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func newRanges(t *testing.T, root string, count int64) *Ranges {
	t.Helper()
	r, err := New(Config{RootDir: root, First: Size, Count: count * Size, PerPod: Size}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func hostID(t *testing.T, r *Ranges, uid types.UID) uint32 {
	t.Helper()
	ns, err := r.Of(&v1.Pod{ObjectMeta: metav1.ObjectMeta{UID: uid}})
	if err != nil {
		t.Fatal(err)
	}
	if len(ns.Uids) != 1 || ns.Uids[0].Length != Size || ns.Gids[0].HostId != ns.Uids[0].HostId {
		t.Fatalf("mapping %v", ns)
	}
	return ns.Uids[0].HostId
}

func TestRangesAreUnique(t *testing.T) {
	root := t.TempDir()
	r := newRanges(t, root, 2)
	a, b := hostID(t, r, "a"), hostID(t, r, "b")
	if a == b || a < Size || b < Size {
		t.Fatalf("a has %d, b has %d", a, b)
	}
	if again := hostID(t, r, "a"); again != a {
		t.Errorf("a had %d and now has %d", a, again)
	}
	if _, err := r.Of(&v1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "c"}}); err == nil || !strings.Contains(err.Error(), "all 2 ranges") {
		t.Errorf("a third pod: %v", err)
	}
	next := newRanges(t, root, 2) // a restart of the agent
	if got := hostID(t, next, "b"); got != b {
		t.Errorf("b had %d and after a restart has %d", b, got)
	}
	next.Release("a")
	if err := os.RemoveAll(filepath.Join(root, "pods", "a")); err != nil {
		t.Fatal(err)
	}
	if got := hostID(t, next, "c"); got != a {
		t.Errorf("c has %d, want the freed %d", got, a)
	}
}

// A pod that was deleted while no agent ran is not released: housekeeping only removes its directory.
func TestRangesOfRemovedDirectoriesAreUsedAgain(t *testing.T) {
	root := t.TempDir()
	r := newRanges(t, root, 2)
	a := hostID(t, r, "a")
	hostID(t, r, "b")
	next := newRanges(t, root, 2)
	if err := os.RemoveAll(filepath.Join(root, "pods", "a")); err != nil {
		t.Fatal(err)
	}
	if got := hostID(t, next, "c"); got != a {
		t.Errorf("c has %d, want the %d of the removed pod", got, a)
	}
	next.Release("a") // late: the range is that of c
	if _, err := next.Of(&v1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "d"}}); err == nil {
		t.Error("d has a range that is in use")
	}
}

func TestMappingFileFormat(t *testing.T) {
	root := t.TempDir()
	hostID(t, newRanges(t, root, 1), "a")
	data, err := os.ReadFile(filepath.Join(root, "pods", "a", "userns"))
	if err != nil {
		t.Fatal(err)
	}
	want := `{"uidMappings":[{"hostId":65536,"containerId":0,"length":65536}],"gidMappings":[{"hostId":65536,"containerId":0,"length":65536}]}`
	if string(data) != want {
		t.Errorf("got  %s\nwant %s", data, want)
	}
}

func TestInvalidMappingFileIsKept(t *testing.T) {
	for name, content := range map[string]string{
		"truncated":  `{"uidMappings":[{"hos`,
		"empty":      ``,
		"other size": `{"uidMappings":[{"hostId":65536,"containerId":0,"length":10}],"gidMappings":[{"hostId":65536,"containerId":0,"length":10}]}`,
		"no uids":    `{"gidMappings":[]}`,
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			dir := filepath.Join(root, "pods", "a")
			if err := os.MkdirAll(dir, 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, "userns"), []byte(content), 0o644); err != nil {
				t.Fatal(err)
			}
			if errs := Check(Config{RootDir: root, PerPod: Size}); len(errs) != 1 {
				t.Errorf("check found %v", errs)
			}
			r := newRanges(t, root, 3)
			if _, err := r.Of(&v1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "a"}}); err == nil {
				t.Error("a range was allocated to its pod")
			}
			hostID(t, r, "b")
		})
	}
}

func TestSubordinateIDs(t *testing.T) {
	first, count, err := parseSubordinate(strings.NewReader("0: kubelet 65536 7208960\n"))
	if err != nil || first != 65536 || count != 7208960 {
		t.Errorf("got %d, %d, %v", first, count, err)
	}
	for _, text := range []string{"nonsense\n", "0: kubelet 65536 65536\n1: kubelet 131072 65536\n"} {
		if _, _, err := parseSubordinate(strings.NewReader(text)); err == nil {
			t.Errorf("%q was accepted", text)
		}
	}
}

// Ids have 32 bits: with many ids for each of many pods, ranges must not wrap around to those of other pods or of
// the host.
func TestRangesEndWithTheIDsOfTheHost(t *testing.T) {
	const perPod = 1 << 30
	r, err := New(Config{RootDir: t.TempDir(), First: Size, Count: 110 * perPod, PerPod: perPod}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []uint32{Size, Size + perPod, Size + 2*perPod} {
		ns, err := r.Of(&v1.Pod{ObjectMeta: metav1.ObjectMeta{UID: types.UID(rune('a' + i))}})
		if err != nil || ns.Uids[0].HostId != want || ns.Uids[0].Length != perPod {
			t.Errorf("pod %d: %v, %v, want %d", i, ns, err, want)
		}
	}
	if ns, err := r.Of(&v1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "d"}}); err == nil {
		t.Errorf("a fourth pod has %v", ns)
	}
	if _, err := New(Config{RootDir: t.TempDir(), First: Size, Count: 1 << 32, PerPod: 1<<32 - Size}, slog.New(slog.DiscardHandler)); err == nil {
		t.Error("ids that no pod can have are accepted")
	}
}

// An earlier agent may have had other settings. No id belongs to two pods.
func TestRangesOfAnEarlierAgentDoNotOverlap(t *testing.T) {
	root, log := t.TempDir(), slog.New(slog.DiscardHandler)
	start := func(first int64) *Ranges {
		r, err := New(Config{RootDir: root, First: first, Count: 8 * Size, PerPod: 2 * Size}, log)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	first := func(r *Ranges, uid types.UID) int64 {
		ns, err := r.Of(&v1.Pod{ObjectMeta: metav1.ObjectMeta{UID: uid}})
		if err != nil {
			t.Fatal(err)
		}
		return int64(ns.Uids[0].HostId)
	}
	a := first(start(Size), "a")
	if b := first(start(2*Size), "b"); b < a+2*Size {
		t.Errorf("a has %d ids from %d, b those from %d", 2*Size, a, b)
	}
}

// Two pods may have the same range on disk, as after a restore of a backup. It is free when both are removed.
func TestRangeOfTwoPodsIsFreeWhenBothAreRemoved(t *testing.T) {
	root := t.TempDir()
	a := hostID(t, newRanges(t, root, 1), "a")
	if err := os.CopyFS(filepath.Join(root, "pods", "b"), os.DirFS(filepath.Join(root, "pods", "a"))); err != nil {
		t.Fatal(err)
	}
	r := newRanges(t, root, 1)
	for _, uid := range []types.UID{"a", "b"} {
		if _, err := r.Of(&v1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "c"}}); err == nil {
			t.Fatalf("the range is free before %s is removed", uid)
		}
		r.Release(uid)
	}
	if got := hostID(t, r, "c"); got != a {
		t.Errorf("c has %d, want %d", got, a)
	}
}
