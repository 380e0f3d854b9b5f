package source

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// assembled is what all files say together.
type assembled struct {
	pods       []*v1.Pod
	configMaps []*v1.ConfigMap
	secrets    []*v1.Secret
}

// same compares by identity: an object is made anew when its file changed, and only then.
func (a assembled) same(b assembled) bool {
	return slices.Equal(a.pods, b.pods) && slices.Equal(a.configMaps, b.configMaps) && slices.Equal(a.secrets, b.secrets)
}

// claimed is who has an object's name.
type claimed struct {
	path   string
	object metav1.Object
}

// assemble joins the files. It is not ok while the path could never be read: then nothing
// is known, which is not the same as nothing wanted.
func (f *File) assemble() (all assembled, ok bool) {
	if root := f.files[rootKey]; root != nil && root.bad != nil && !f.sent {
		return all, false
	}
	owners := f.claim()
	clashes := map[string]error{}
	for _, path := range slices.Sorted(maps.Keys(f.files)) {
		m := f.files[path].good
		if m == nil {
			continue
		}
		all.pods = append(all.pods, keep(owners, clashes, path, "pod", m.pods)...)
		all.configMaps = append(all.configMaps, keep(owners, clashes, path, "ConfigMap", m.configMaps)...)
		all.secrets = append(all.secrets, keep(owners, clashes, path, "Secret", m.secrets)...)
	}
	for _, path := range slices.Sorted(maps.Keys(clashes)) {
		if before := f.clashes[path]; before == nil || before.Error() != clashes[path].Error() {
			f.complain(path, clashes[path])
		}
	}
	f.owners, f.clashes = owners, clashes
	return all, true
}

// claim decides which file has a name that several use: the one that has had it, so that
// a copy put beside it does not replace a running pod; else the first in order.
func (f *File) claim() map[string]claimed {
	owners := map[string]claimed{}
	for _, incumbents := range []bool{true, false} {
		for _, path := range slices.Sorted(maps.Keys(f.files)) {
			m := f.files[path].good
			if m == nil {
				continue
			}
			for name, object := range m.all() {
				if incumbents && f.owners[name].path != path {
					continue
				}
				if _, taken := owners[name]; !taken {
					owners[name] = claimed{path, object}
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

// keep drops the objects whose name belongs to another, and says so.
func keep[T metav1.Object](owners map[string]claimed, clashes map[string]error, path, kind string, objects []T) []T {
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
		clashes[path] = errors.Join(clashes[path], err)
	}
	return kept
}
