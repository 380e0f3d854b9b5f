package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"

	"k8s.io/apimachinery/pkg/types"
)

// Pods lists the pods that have a cgroup of any controller, whether or not they still exist.
func (t *Tree) Pods() ([]types.UID, error) {
	found := map[types.UID]bool{}
	for _, class := range t.qosCgroups() {
		for _, dir := range t.hierarchy.dirs(class.path(t.driver)) {
			entries, err := os.ReadDir(dir)
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			if err != nil {
				return nil, fmt.Errorf("list pod cgroups: %w", err)
			}
			for _, e := range entries {
				if uid, ok := class.podUID(t.driver, e.Name()); ok && e.IsDir() {
					found[uid] = true
				}
			}
		}
	}
	return slices.Sorted(maps.Keys(found)), nil
}
