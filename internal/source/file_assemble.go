package source

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// content is the content of all files.
type content struct {
	pods       []*v1.Pod
	configMaps []*v1.ConfigMap
	secrets    []*v1.Secret
}

// same compares pointers: an object is decoded again only when its file has changed.
func (a content) same(b content) bool {
	return slices.Equal(a.pods, b.pods) && slices.Equal(a.configMaps, b.configMaps) && slices.Equal(a.secrets, b.secrets)
}

// owner is the file and object that have a name.
type owner struct {
	path   string
	object metav1.Object
}

// assemble merges the files. ok is false while the path could never be read: then the pods are unknown,
// not empty.
func (f *File) assemble() (all content, ok bool) {
	if root := f.files[rootKey]; root != nil && root.err != nil && !f.sent {
		return all, false
	}
	owners := f.claim()
	conflicts := map[string]error{}
	for _, path := range slices.Sorted(maps.Keys(f.files)) {
		m := f.files[path].valid
		if m == nil {
			continue
		}
		all.pods = append(all.pods, withoutConflicts(owners, conflicts, path, "pod", m.pods)...)
		all.configMaps = append(all.configMaps, withoutConflicts(owners, conflicts, path, "ConfigMap", m.configMaps)...)
		all.secrets = append(all.secrets, withoutConflicts(owners, conflicts, path, "Secret", m.secrets)...)
	}
	for _, path := range slices.Sorted(maps.Keys(conflicts)) {
		if before := f.conflicts[path]; before == nil || before.Error() != conflicts[path].Error() {
			f.reportError(path, conflicts[path])
		}
	}
	f.owners, f.conflicts = owners, conflicts
	return all, true
}

// claim decides which file has a name that several use: the one that had it before, so that a copy of its
// manifest does not replace a running pod; otherwise the first in order.
func (f *File) claim() map[string]owner {
	owners := map[string]owner{}
	for _, previousOwners := range []bool{true, false} {
		for _, path := range slices.Sorted(maps.Keys(f.files)) {
			m := f.files[path].valid
			if m == nil {
				continue
			}
			for name, object := range m.all() {
				if previousOwners && f.owners[name].path != path {
					continue
				}
				if _, taken := owners[name]; !taken {
					owners[name] = owner{path, object}
				}
			}
		}
	}
	return owners
}

// all yields every object with a name that is unique among all kinds.
func (m *manifest) all() func(yield func(string, metav1.Object) bool) {
	return func(yield func(string, metav1.Object) bool) {
		for _, p := range m.pods {
			if !yield(nameOf("pod", p), p) {
				return
			}
		}
		for _, c := range m.configMaps {
			if !yield(nameOf("ConfigMap", c), c) {
				return
			}
		}
		for _, s := range m.secrets {
			if !yield(nameOf("Secret", s), s) {
				return
			}
		}
	}
}

func nameOf(kind string, o metav1.Object) string {
	return kind + " " + o.GetNamespace() + "/" + o.GetName()
}

// withoutConflicts drops the objects whose name belongs to another one, and adds an error for each.
func withoutConflicts[T metav1.Object](owners map[string]owner, conflicts map[string]error, path, kind string, objects []T) []T {
	var kept []T
	for _, o := range objects {
		owner := owners[nameOf(kind, o)]
		if owner.object == metav1.Object(o) {
			kept = append(kept, o)
			continue
		}
		err := fmt.Errorf("%s is in both %s and %s; the one in %s is used", nameOf(kind, o), owner.path, path, owner.path)
		if owner.path == path {
			err = fmt.Errorf("%s is twice in %s; the first is used", nameOf(kind, o), path)
		}
		conflicts[path] = errors.Join(conflicts[path], err)
	}
	return kept
}
