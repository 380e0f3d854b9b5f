package host

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// SetCgroup writes files of a process's cgroup, such as hugetlb.2MB.limit_in_bytes. The process must belong
// to the container: the caller has its PID from Docker.
func SetCgroup(pid int, values map[string]string) error {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", pid))
	if err != nil {
		return fmt.Errorf("set cgroup: %w", err)
	}
	var errs []error
	for file, value := range values {
		dir, err := cgroupDir("/sys/fs/cgroup", string(text), file)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, file), []byte(value), 0)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("set cgroup: %s: %w", file, err))
		}
	}
	return errors.Join(errs...)
}

// cgroupDir is the directory of a controller's file, from the text of /proc/PID/cgroup.
func cgroupDir(root, text, file string) (string, error) {
	controller, _, ok := strings.Cut(file, ".")
	if !ok || strings.Contains(file, "/") {
		return "", fmt.Errorf("%q is not a cgroup file", file)
	}
	unified := ""
	for line := range strings.Lines(text) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) != 3 {
			continue
		}
		if parts[1] == "" {
			unified = filepath.Join(root, parts[2])
		}
		for name := range strings.SplitSeq(parts[1], ",") {
			if name == controller {
				return filepath.Join(root, controller, parts[2]), nil
			}
		}
	}
	if _, err := os.Stat(filepath.Join(root, "cgroup.controllers")); err == nil && unified != "" {
		return unified, nil // cgroup v2 only
	}
	return "", fmt.Errorf("controller %s is not mounted", controller)
}

// HugepageFiles are the cgroup files of limits by page size, such as "2MB". The kubelet sends limits for every
// container; without the controller there is nothing to limit them with.
func (l *Limits) HugepageFiles(limits map[string]uint64) map[string]string {
	if len(limits) == 0 {
		return map[string]string{}
	}
	suffix := ".limit_in_bytes"
	if _, err := os.Stat("/sys/fs/cgroup/cgroup.controllers"); err == nil {
		suffix = ".max"
	} else if _, err := os.Stat("/sys/fs/cgroup/hugetlb"); err != nil {
		l.logOnce("huge pages are not limited, the cgroup controller hugetlb is not mounted")
		return map[string]string{}
	}
	files := map[string]string{}
	for size, limit := range limits {
		files["hugetlb."+size+suffix] = strconv.FormatUint(limit, 10)
	}
	return files
}
