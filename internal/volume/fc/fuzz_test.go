package fc

import "testing"

// FuzzDirName: the directory of a disk is found again by the name that was read from it.
func FuzzDirName(f *testing.F) {
	for _, name := range []string{"50060e801049cfd1-lun-0", "3600508b400105e210000900000490000", "lun-0", "-lun-", "a-b-lun-1", ""} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, dir string) {
		n, err := parseDirName(dir)
		if err != nil {
			return
		}
		if len(n.wwns)+len(n.wwids) == 0 {
			t.Errorf("%q: no disk and no error", dir)
		}
		if len(n.wwns) > 0 && n.dirName() != dir {
			t.Errorf("%q was read as %+v, whose name is %q", dir, n, n.dirName())
		}
	})
}
