package mounts

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/moby/sys/mountinfo"
)

// SELinuxEnabled reports whether SELinux is enabled on the node.
func SELinuxEnabled() (bool, error) {
	table, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return false, fmt.Errorf("detect SELinux: %w", err)
	}
	defer table.Close()
	labels, err := labelsFiles(table, func() ([]byte, error) { return os.ReadFile("/proc/thread-self/attr/current") })
	if err != nil {
		return false, fmt.Errorf("detect SELinux: %w", err)
	}
	return labels, nil
}

// labelsFiles reports whether selinuxfs is mounted and a policy is loaded: without one, processes
// have the initial label "kernel". A read-only selinuxfs is that of the host, seen in a container,
// which must not relabel files.
func labelsFiles(table io.Reader, ownLabel func() ([]byte, error)) (bool, error) {
	found, err := mountinfo.GetMountsFromReader(table, mountinfo.FSTypeFilter("selinuxfs"))
	if err != nil {
		return false, err
	}
	writable := func(m *mountinfo.Info) bool { return !slices.Contains(strings.Split(m.Options, ","), "ro") }
	if !slices.ContainsFunc(found, writable) {
		return false, nil
	}
	label, err := ownLabel()
	if err != nil {
		return false, err
	}
	return strings.TrimRight(string(label), "\n\x00") != "kernel", nil
}
