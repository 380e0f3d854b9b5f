package volume

import (
	"io/fs"
	"os"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

func TestEmptyDirMode(t *testing.T) {
	for given, want := range map[*int32]fs.FileMode{
		nil:                    fs.ModeDir | 0o777,
		ptr.To[int32](0o750):   fs.ModeDir | 0o750,
		ptr.To[int32](0o01777): fs.ModeDir | fs.ModeSticky | 0o777,
	} {
		n := newNode(t)
		vol := n.mount(n.pod(v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{Mode: given}}))
		info, err := os.Stat(vol)
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode() != want {
			t.Errorf("mode %#o: the directory is %s, want %s", ptr.Deref(given, 0o777), info.Mode(), want)
		}
	}
}
