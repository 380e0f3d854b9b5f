// Package pages gives back memory that holds the executable.
package pages

import (
	"bufio"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// Release drops the pages of the executable from this process. Nearly all of them are touched at the
// start, when every API type is registered, and few are used afterwards. Those are mapped again from the page
// cache.
func Release() error {
	path, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return fmt.Errorf("find executable: %w", err)
	}
	maps, err := os.Open("/proc/self/maps")
	if err != nil {
		return fmt.Errorf("find mappings: %w", err)
	}
	defer maps.Close()
	for lines := bufio.NewScanner(maps); lines.Scan(); {
		var from, to uintptr
		var mode string
		line := lines.Text()
		if !strings.HasSuffix(line, " "+path) {
			continue
		}
		if _, err := fmt.Sscanf(line, "%x-%x %s", &from, &to, &mode); err != nil || strings.Contains(mode, "w") {
			continue // written pages are the program's data
		}
		if err := madvise(from, to-from, unix.MADV_DONTNEED); err != nil {
			return fmt.Errorf("release %s: %w", line, err)
		}
	}
	return nil
}

func madvise(address, length uintptr, advice int) error {
	if _, _, errno := unix.Syscall(unix.SYS_MADVISE, address, length, uintptr(advice)); errno != 0 {
		return errno
	}
	return nil
}
