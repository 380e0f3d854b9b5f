package stats

import (
	"fmt"
	"os"
	"testing"

	"github.com/moby/sys/mountinfo"
)

func TestContainerID(t *testing.T) {
	for dir, want := range map[string]string{
		"0123abcd":                      "0123abcd",
		"cri-containerd-0123abcd.scope": "0123abcd",
		"crio-0123abcd.scope":           "0123abcd",
		"crio-conmon-0123abcd.scope":    "",
		"init.scope":                    "",
	} {
		if got, ok := containerID(dir); got != want || ok != (want != "") {
			t.Errorf("%s: %q, %v", dir, got, ok)
		}
	}
}

func TestParseNetwork(t *testing.T) {
	got := parseNetwork([]byte(`Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed
    lo:    1000      10    0    0    0     0          0         0     1000      10    0    0    0     0       0          0
  eth0:  260390     402    1    2    0     0          0         0    78606     388    3    4    0     0       0          0
vethab:     100       1    0    0    0     0          0         0      100       1    0    0    0     0       0          0
wg0:18446744073709551615 1 0 0 0 0 0 0 5 6 7 8 0 0 0 0
short: 1 2 3
`))
	want := []traffic{
		{"eth0", 260390, 402, 1, 2, 78606, 388, 3, 4},
		{"wg0", 18446744073709551615, 1, 0, 0, 5, 6, 7, 8},
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%v, want %v", got, want)
	}
}

func TestParseDiskTraffic(t *testing.T) {
	got := parseDiskTraffic([]byte(" 254       0 vda 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17\n 254 1 short 1 2\n"))
	want := map[[2]int]diskTraffic{{254, 0}: {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%v, want %v", got, want)
	}
}

func TestParseUint(t *testing.T) {
	for text, want := range map[string]struct {
		n  uint64
		ok bool
	}{
		"0": {0, true}, "18446744073709551615": {18446744073709551615, true}, "18446744073709551616": {0, false},
		"99999999999999999999": {0, false}, "": {0, false}, "-1": {0, false}, "max": {0, false}, "1 ": {0, false},
	} {
		if n, ok := parseUint([]byte(text)); n != want.n || ok != want.ok {
			t.Errorf("%q: %d, %v", text, n, ok)
		}
	}
}

func TestDeviceOf(t *testing.T) {
	id := "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
	for _, c := range []struct {
		mountinfo.Info
		want string
	}{
		{mountinfo.Info{FSType: "ext4", Source: "/dev/vda", Mountpoint: "/"}, "/dev/vda"},
		{mountinfo.Info{FSType: "overlay", Source: "overlay", Mountpoint: "/", Minor: 43}, "overlay_0-43"},
		{mountinfo.Info{FSType: "overlay", Source: "overlay", Mountpoint: "/run/containerd/" + id + "/rootfs"}, ""},
		{mountinfo.Info{FSType: "tmpfs", Source: "tmpfs", Mountpoint: "/run"}, "/run"},
		{mountinfo.Info{FSType: "tmpfs", Source: "shm", Mountpoint: "/run/containerd/sandboxes/" + id + "/shm"}, ""},
		{mountinfo.Info{FSType: "tmpfs", Source: "tmpfs", Mountpoint: "/root/pods/uid/volumes/kubernetes.io~secret/s"}, ""},
		{mountinfo.Info{FSType: "proc", Source: "proc", Mountpoint: "/proc"}, ""},
	} {
		if got, ok := deviceOf(&c.Info, "/root"); ok != (c.want != "") || (ok && got != c.want) {
			t.Errorf("%s: %q, %v, want %q", c.Mountpoint, got, ok, c.want)
		}
	}
}

// FuzzParse fuzzes all parsers: the kernel's files are trusted, but their format may change.
func FuzzParse(f *testing.F) {
	for _, file := range []string{"/proc/self/net/dev", "/proc/diskstats", "/proc/pressure/cpu", "/proc/stat"} {
		if text, err := os.ReadFile(file); err == nil {
			f.Add(text)
		}
	}
	f.Add([]byte("some avg10=1.0 total=\nfull\n\n = =\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		parseNetwork(text)
		parseDiskTraffic(text)
		parsePressure(text)
		pairs(text, func(key []byte, _ uint64) {
			if len(key) > len(text) {
				t.Error("a key is longer than its file")
			}
		})
	})
}
