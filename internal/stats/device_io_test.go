package stats

import (
	"os"
	"path/filepath"
	"testing"
)

func TestDeviceNames(t *testing.T) {
	block := t.TempDir()
	for name, number := range map[string]string{"sda": "8:0", "loop0": "7:0", "loop1": "7:1", "sr0": "11:0", "bad": "x"} {
		dir := filepath.Join(block, name)
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "dev"), []byte(number+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	names := readDeviceNames(block, []fileSystem{{device: "/dev/sda1", major: 8, minor: 1}, {device: "/dev/loop1", major: 7, minor: 1}})
	for device, want := range map[deviceNumber]string{
		{8, 0}: "/dev/sda", {8, 1}: "/dev/sda1", {7, 0}: "", {7, 1}: "/dev/loop1", {11, 0}: "", {9, 9}: "",
	} {
		if got := names[device]; got != want {
			t.Errorf("device %v is %q, want %q", device, got, want)
		}
	}
}

// Whatever the kernel writes, parsers do not fail, and count only what they understand.
func FuzzDeviceIO(f *testing.F) {
	f.Add([]byte("8:0 rbytes=1 wbytes=2 rios=3 wios=4\n"))
	f.Add([]byte("8:0 Read 4096\nTotal 4096\n"))
	f.Add([]byte("8:0\n:\n8: 1 2\nx:y Read 1\n8:0 rbytes=\n8:0 rbytes=99999999999999999999\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		var v1, v2 ioDevices
		v1.parseV1(text, func(d *deviceIO) *[]operationCount { return &d.bytes })
		v2.parseV2(text)
		for _, all := range []ioDevices{v1, v2} {
			seen := map[deviceNumber]bool{}
			for _, d := range all {
				if seen[d.number] {
					t.Errorf("device %v is listed twice", d.number)
				}
				seen[d.number] = true
			}
		}
	})
}
