package host

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// releaseProgram unmaps the pages of the executable from this process. Their memory stays in the page cache, and what
// is used again is mapped again without a read from the disk. The start touches nearly all of them.
func releaseProgram() error {
	path, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return fmt.Errorf("release program: %w", err)
	}
	mappings, err := os.Open("/proc/self/smaps")
	if err != nil {
		return fmt.Errorf("release program: %w", err)
	}
	defer mappings.Close()
	found, err := programPages(mappings, path)
	if err != nil {
		return fmt.Errorf("release program: read mappings: %w", err)
	}
	for _, m := range found {
		if _, _, errno := unix.Syscall(unix.SYS_MADVISE, m.from, m.to-m.from, unix.MADV_DONTNEED); errno != 0 {
			return fmt.Errorf("release program: release %x-%x: %w", m.from, m.to, errno)
		}
	}
	return nil
}

// mapping is a range of addresses.
type mapping struct{ from, to uintptr }

// programPages returns the mappings of a file, in the format of /proc/PID/smaps, that have its content and nothing
// else. Pages that were written have other content, which a release would lose: data of the program, and the
// breakpoints of debuggers and uprobes in its code.
func programPages(smaps io.Reader, path string) (found []mapping, err error) {
	var current mapping
	wanted := false
	lines := bufio.NewScanner(smaps)
	for lines.Scan() {
		line := lines.Text()
		var anonymous int
		if _, err := fmt.Sscanf(line, "Anonymous: %d kB", &anonymous); err == nil {
			if wanted && anonymous == 0 {
				found = append(found, current)
			}
			continue
		}
		var mode string
		var m mapping
		if _, err := fmt.Sscanf(line, "%x-%x %s", &m.from, &m.to, &mode); err == nil {
			current, wanted = m, strings.HasSuffix(line, " "+path) && !strings.Contains(mode, "w")
		}
	}
	return found, lines.Err()
}
