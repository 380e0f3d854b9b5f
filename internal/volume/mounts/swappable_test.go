package mounts

import (
	"os"
	"slices"
	"testing"
)

func TestWarnIfSwappable(t *testing.T) {
	// Reason and message are the reference kubelet's.
	const warning = "PossibleMemoryBackedVolumesOnDisk: The tmpfs noswap option is not supported. Memory-backed volumes (e.g. secrets, emptyDirs, etc.) might be swapped to disk and should no longer be considered secure."
	for name, c := range map[string]struct {
		swap, noswap bool
		want         []string
	}{
		"no swap": {false, false, nil},
		"swap that a kernel cannot keep tmpfs out of":      {true, false, []string{warning}},
		"swap, and a kernel that can keep tmpfs out of it": {true, true, nil},
	} {
		t.Run(name, func(t *testing.T) {
			var warned []string
			warnIfSwappable(c.swap, func() bool { return c.noswap }, func(reason, message string) { warned = append(warned, reason+": "+message) })
			if !slices.Equal(warned, c.want) {
				t.Errorf("warnings %q, want %q", warned, c.want)
			}
		})
	}
}

// TestNoswapSupported: the answer is that of a mount, of which nothing is left.
func TestNoswapSupported(t *testing.T) {
	k, dir, point := &Kernel{}, t.TempDir(), t.TempDir()
	if err := k.Tmpfs(point, 0); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = k.Unmount(point) }()
	if got := noswapSupported(dir); got == k.noswapRefused.Load() {
		t.Errorf("noswap is supported: %v, but a mount says otherwise", got)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}
