package fakekernel

import (
	"maps"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// Kernel has the cgroups of pods and the mounts. All methods may be called from any goroutine.
type Kernel struct {
	mu      sync.Mutex
	cgroups map[types.UID]bool
	mounts  []mount // in the order in which they were mounted
}

type mount struct {
	path string
	kind int64 // magic number of the file system
}

// New returns a kernel without cgroups and mounts.
func New() *Kernel { return &Kernel{cgroups: map[types.UID]bool{}} }

// MountPoints lists the mounts at and below a directory, oldest first.
func (k *Kernel) MountPoints(dir string) []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	var all []string
	for _, m := range k.mounts {
		if m.path == dir || strings.HasPrefix(m.path, dir+"/") {
			all = append(all, m.path)
		}
	}
	return all
}

// PodCgroups lists the pods that have a cgroup.
func (k *Kernel) PodCgroups() []types.UID {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Sorted(maps.Keys(k.cgroups))
}

// Intercept decides whether a change is made. It calls act to make it.
type Intercept func(call, subject string, act func() error) error

// View is the kernel as one run of an agent uses it. It implements volume.Mounter.
type View struct {
	kernel    *Kernel
	intercept Intercept
}

// View returns a view whose changes go through intercept, or happen at once if it is nil.
func (k *Kernel) View(intercept Intercept) View {
	if intercept == nil {
		intercept = func(_, _ string, act func() error) error { return act() }
	}
	return View{kernel: k, intercept: intercept}
}

// change makes a change under the lock.
func (v View) change(call, subject string, act func() error) error {
	return v.intercept(call, subject, func() error {
		v.kernel.mu.Lock()
		defer v.kernel.mu.Unlock()
		return act()
	})
}
