package host

import (
	"bufio"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

const smaps = `00400000-01c1c000 r-xp 00000000 fe:00 9980228    /usr/bin/swiftlet
Size:              24688 kB
Anonymous:             0 kB
01c1c000-03603000 r--p 0181c000 fe:00 9980228    /usr/bin/swiftlet
Anonymous:             4 kB
03603000-036b4000 rw-p 03203000 fe:00 9980228    /usr/bin/swiftlet
Anonymous:             0 kB
036b4000-05702000 rw-p 00000000 00:00 0
Anonymous:           120 kB
7f71ec021000-7f71f0000000 r-xp 00000000 00:00 0  /usr/bin/other
Anonymous:             0 kB
7f71f0000000-7f71f0001000 r--p 00000000 00:00 0  /usr/bin/swiftlet
Anonymous:             0 kB
`

func TestProgramPages(t *testing.T) {
	got, err := programPages(strings.NewReader(smaps), "/usr/bin/swiftlet")
	want := []mapping{{0x400000, 0x1c1c000}, {0x7f71f0000000, 0x7f71f0001000}}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("got %x, %v, want %x", got, err, want)
	}
}

func TestReleaseProgram(t *testing.T) {
	before := residentFile(t)
	if err := releaseProgram(); err != nil {
		t.Fatal(err)
	}
	// What the test itself uses is mapped again at once.
	if after := residentFile(t); after > before*3/4 {
		t.Errorf("%d kB of files are resident, %d kB before", after, before)
	}
}

func residentFile(t *testing.T) (kilobytes int) {
	t.Helper()
	file, err := os.Open("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		if _, err := fmt.Sscanf(lines.Text(), "RssFile: %d kB", &kilobytes); err == nil {
			return kilobytes
		}
	}
	t.Fatal("no RssFile in /proc/self/status")
	return 0
}
