package cgroup

import (
	"testing"
	"testing/fstest"
)

func TestLowestMemoryLimit(t *testing.T) {
	file := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }
	for name, c := range map[string]struct {
		files  fstest.MapFS
		cgroup string
		want   uint64
	}{
		"v2_own_limit":           {fstest.MapFS{"system.slice/kubelet.service/f": file("536870912\n"), "system.slice/f": file("max\n")}, "/system.slice/kubelet.service", 536870912},
		"v2_limit_of_slice":      {fstest.MapFS{"system.slice/kubelet.service/f": file("max\n"), "system.slice/f": file("1000000\n")}, "/system.slice/kubelet.service", 1000000},
		"v2_no_limit":            {fstest.MapFS{"system.slice/f": file("max\n")}, "/system.slice", 0},
		"v1_no_limit":            {fstest.MapFS{"f": file("9223372036854771712\n")}, "/", 0},
		"v1_root_limit":          {fstest.MapFS{"f": file("4096000\n"), "a/f": file("9223372036854771712\n")}, "/a", 4096000},
		"cgroup_not_below_mount": {fstest.MapFS{}, "/../outside", 0},
		"empty_path":             {fstest.MapFS{"f": file("7\n")}, "", 7},
	} {
		t.Run(name, func(t *testing.T) {
			if got, err := lowestLimit(c.files, c.cgroup, "f"); err != nil || got != c.want {
				t.Errorf("got %d %v, want %d", got, err, c.want)
			}
		})
	}
}
