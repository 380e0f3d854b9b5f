package hostpath

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"

	"swiftlet/internal/volume/plugin"
)

func TestTypes(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	socket, err := net.Listen("unix", filepath.Join(dir, "socket"))
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	for _, c := range []struct {
		path string
		kind v1.HostPathType
		err  string // DIR stands for the test's directory
	}{
		{dir, v1.HostPathUnset, ""},
		{"/none/at/all", v1.HostPathUnset, ""},
		{dir, v1.HostPathDirectory, ""},
		{dir + "/file", v1.HostPathFile, ""},
		{dir + "/socket", v1.HostPathSocket, ""},
		{"/dev/null", v1.HostPathCharDev, ""},
		{dir + "/made/dir", v1.HostPathDirectoryOrCreate, ""},
		{dir + "/made/dir", v1.HostPathDirectory, ""},
		{dir + "/made/file", v1.HostPathFileOrCreate, ""},
		{dir + "/made/file", v1.HostPathFile, ""},
		{dir + "/file", v1.HostPathDirectory, "hostPath type check failed: DIR/file is not a directory, it's a File"},
		{dir + "/file", v1.HostPathDirectoryOrCreate, "hostPath type check failed: DIR/file is not a directory, it's a File"},
		{dir, v1.HostPathFile, "hostPath type check failed: DIR is not a file, it's a Directory"},
		{dir, v1.HostPathFileOrCreate, "hostPath type check failed: DIR is not a file, it's a Directory"},
		{dir, v1.HostPathSocket, "hostPath type check failed: DIR is not a socket file, it's a Directory"},
		{"/dev/null", v1.HostPathBlockDev, "hostPath type check failed: /dev/null is not a block device, it's a CharDevice"},
		{dir + "/file", v1.HostPathCharDev, "hostPath type check failed: DIR/file is not a character device, it's a File"},
		{dir + "/none", v1.HostPathDirectory, `hostPath type check failed, DIR/none is not a directory, unable to determine its type: path "DIR/none" does not exist`},
		{dir + "/a/../b", v1.HostPathUnset, "invalid HostPath `DIR/a/../b`: must not contain '..'"},
		{dir, "Odd", "Odd is an invalid volume type"},
	} {
		t.Run(string(c.kind)+" "+filepath.Base(c.path), func(t *testing.T) {
			kind := c.kind
			volume := &v1.Volume{VolumeSource: v1.VolumeSource{HostPath: &v1.HostPathVolumeSource{Path: c.path, Type: &kind}}}
			got, err := Plugin{}.SetUp(t.Context(), plugin.Request{Spec: plugin.Spec{Volume: volume}})
			if want := strings.ReplaceAll(c.err, "DIR", dir); want != "" {
				if err == nil || err.Error() != want {
					t.Errorf("error %v\nwant  %s", err, want)
				}
				return
			}
			if err != nil || got.HostPath != c.path || got.ReadOnly || got.SELinuxRelabel {
				t.Errorf("%+v, %v", got, err)
			}
		})
	}
}
