package content

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"

	"swiftlet/internal/pod"
	"swiftlet/internal/volume/plugin"
)

// makeNested creates mount points in the volume for other volumes that containers mount inside it:
// the volume is mounted read-only, so the runtime cannot create them.
func makeNested(r plugin.Request, dir string) error {
	for c := range pod.Containers(r.Pod) {
		for _, nested := range nestedPaths(c, r.Volume.Name) {
			if err := os.MkdirAll(filepath.Join(dir, nested), 0o755); err != nil {
				return fmt.Errorf("unable to create nested volume mountpoints: %w", err)
			}
		}
	}
	return nil
}

// nestedPaths lists the mount points inside the volume, relative to it, without those inside another
// nested mount.
func nestedPaths(c *v1.Container, volume string) []string {
	var own, all []string
	for _, m := range c.VolumeMounts {
		// Joined to the root, ".." cannot leave it.
		path := filepath.Join("/", m.MountPath)
		all = append(all, path)
		if m.Name == volume && m.SubPath == "" && m.SubPathExpr == "" {
			own = append(own, path)
		}
	}
	// A pod can have thousands of both, also of the same path.
	slices.Sort(own)
	slices.SortFunc(all, func(a, b string) int { return slices.Compare(strings.Split(a, "/"), strings.Split(b, "/")) })
	own, all = slices.Compact(own), slices.Compact(all)
	var nested []string
	for _, base := range own {
		inside, last := strings.TrimSuffix(base, "/")+"/", ""
		for _, path := range all { // those inside a path follow it
			rel, ok := strings.CutPrefix(path, inside)
			if !ok || rel == "" || last != "" && strings.HasPrefix(path, last) {
				continue
			}
			last = path + "/"
			nested = append(nested, rel)
		}
	}
	return nested
}
