package scale

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// inotifyInstances is the kernel's limit for all processes of a user together. Every kubelet has a few: a
// thousand nodes on one machine need more than the default.
const inotifyInstances = "/proc/sys/fs/inotify/max_user_instances"

// RaiseLimits raises limits of this machine for many nodes. The returned function restores them.
func RaiseLimits(nodes int) (restore func() error, err error) {
	text, err := os.ReadFile(inotifyInstances)
	if err != nil {
		return nil, fmt.Errorf("raise limits: %w", err)
	}
	old := strings.TrimSpace(string(text))
	limit, err := strconv.Atoi(old)
	if err != nil {
		return nil, fmt.Errorf("raise limits: %w", err)
	}
	want := limit + 8*nodes
	if err := os.WriteFile(inotifyInstances, []byte(strconv.Itoa(want)), 0o644); err != nil {
		return nil, fmt.Errorf("raise limits: %w", err)
	}
	return func() error {
		if err := os.WriteFile(inotifyInstances, []byte(old), 0o644); err != nil {
			return fmt.Errorf("restore limits: %w", err)
		}
		return nil
	}, nil
}
