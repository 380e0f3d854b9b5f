package content

import (
	"fmt"
	"slices"
	"testing"

	v1 "k8s.io/api/core/v1"
)

func TestNestedPaths(t *testing.T) {
	for _, c := range []struct {
		name   string
		mounts map[string]string // path → volume
		want   []string
	}{
		{"no nested mount", map[string]string{"/a": "vol"}, nil},
		{"nested mount", map[string]string{"/a": "vol", "/a/x": "other"}, []string{"x"}},
		{"nested two levels deep", map[string]string{"/a": "vol", "/a/x/y": "other"}, []string{"x/y"}},
		{"nested in nested mount", map[string]string{"/a": "vol", "/a/x": "other", "/a/x/y": "third"}, []string{"x"}},
		{"sibling with same prefix", map[string]string{"/a": "vol", "/ab": "other", "/a/x": "o2", "/a/x-y": "o3"}, []string{"x", "x-y"}},
		{"path with dot-dot", map[string]string{"/a": "vol", "/a/../../../etc": "other"}, nil},
		{"mount above the volume", map[string]string{"/a/b": "vol", "/a": "other"}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			container := &v1.Container{}
			for path, volume := range c.mounts {
				container.VolumeMounts = append(container.VolumeMounts, v1.VolumeMount{Name: volume, MountPath: path})
			}
			if got := nestedPaths(container, "vol"); !slices.Equal(got, c.want) {
				t.Errorf("%v, want %v", got, c.want)
			}
		})
	}
}

// A container can mount a volume thousands of times, at paths that are the same, with thousands of mounts inside.
func TestNestedPathsOfManyMounts(t *testing.T) {
	const n = 2000
	container := &v1.Container{}
	for i := range n {
		container.VolumeMounts = append(container.VolumeMounts,
			v1.VolumeMount{Name: "vol", MountPath: fmt.Sprintf("/%d/..", i)},
			v1.VolumeMount{Name: "other", MountPath: fmt.Sprintf("/x%d", i)})
	}
	if got := len(nestedPaths(container, "vol")); got != n {
		t.Errorf("%d nested paths, want %d", got, n)
	}
}
