package volume

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

// TestFileOwners: the user of an item takes precedence over the volume's default user, and that over
// the user that all containers run as.
func TestFileOwners(t *testing.T) {
	name := v1.LocalObjectReference{Name: "obj"}
	all, one := ptr.To[int64](2000), ptr.To[int64](3000)
	label := func(path string, user *int64) v1.DownwardAPIVolumeFile {
		return v1.DownwardAPIVolumeFile{Path: path, User: user, FieldRef: &v1.ObjectFieldSelector{FieldPath: "metadata.name"}}
	}
	items := []v1.KeyToPath{{Key: "key", Path: "key"}, {Key: "other", Path: "sub/other", User: one}}
	for kind, c := range map[string]struct {
		source v1.VolumeSource
		want   map[string]uint32
	}{
		"configMap": {v1.VolumeSource{ConfigMap: &v1.ConfigMapVolumeSource{LocalObjectReference: name, DefaultMode: mode(0o400), DefaultUser: all, Items: items}},
			map[string]uint32{"key": 2000, "sub/other": 3000}},
		"configMap with all keys": {v1.VolumeSource{ConfigMap: &v1.ConfigMapVolumeSource{LocalObjectReference: name, DefaultMode: mode(0o400), DefaultUser: all}},
			map[string]uint32{"key": 2000, "other": 2000, "bin": 2000}},
		"configMap without user": {v1.VolumeSource{ConfigMap: &v1.ConfigMapVolumeSource{LocalObjectReference: name, DefaultMode: mode(0o400)}},
			map[string]uint32{"key": 0}},
		"secret": {v1.VolumeSource{Secret: &v1.SecretVolumeSource{SecretName: "obj", DefaultMode: mode(0o400), DefaultUser: all}},
			map[string]uint32{"password": 2000}},
		"downwardAPI": {v1.VolumeSource{DownwardAPI: &v1.DownwardAPIVolumeSource{DefaultMode: mode(0o400), DefaultUser: all,
			Items: []v1.DownwardAPIVolumeFile{label("a", nil), label("b", one)}}},
			map[string]uint32{"a": 2000, "b": 3000}},
		"projected": {v1.VolumeSource{Projected: &v1.ProjectedVolumeSource{DefaultMode: mode(0o400), DefaultUser: all, Sources: []v1.VolumeProjection{
			{ConfigMap: &v1.ConfigMapProjection{LocalObjectReference: name, Items: items}},
			{Secret: &v1.SecretProjection{LocalObjectReference: name}},
			{DownwardAPI: &v1.DownwardAPIProjection{Items: []v1.DownwardAPIVolumeFile{label("b", one)}}},
			{ServiceAccountToken: &v1.ServiceAccountTokenProjection{Path: "mine", ExpirationSeconds: seconds(3600), User: one}},
			{ServiceAccountToken: &v1.ServiceAccountTokenProjection{Path: "ours", ExpirationSeconds: seconds(3600)}},
		}}}, map[string]uint32{"key": 2000, "sub/other": 3000, "password": 2000, "b": 3000, "mine": 3000, "ours": 2000}},
	} {
		t.Run(kind, func(t *testing.T) {
			n := newNode(t)
			p := n.pod(c.source)
			p.Spec.SecurityContext = &v1.PodSecurityContext{RunAsUser: seconds(1000)}
			dir := n.mount(p)
			for path, want := range c.want {
				info, err := os.Stat(filepath.Join(dir, path))
				if err != nil {
					t.Fatal(err)
				}
				if got := info.Sys().(*syscall.Stat_t).Uid; got != want {
					t.Errorf("%s belongs to %d, want %d", path, got, want)
				}
			}
		})
	}
}
