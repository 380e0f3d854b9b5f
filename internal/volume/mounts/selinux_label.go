package mounts

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	v1 "k8s.io/api/core/v1"
)

// Policy knows how the node's SELinux policy labels the files of containers. Its zero value
// reads /etc/selinux.
type Policy struct{ dir string }

// FileLabel is the label of the files of a process with these options. It is "" where they
// name no level: then the runtime chooses one for each container, and nobody knows it before.
func (p Policy) FileLabel(o *v1.SELinuxOptions) (string, error) {
	if o == nil || o.Level == "" {
		return "", nil
	}
	usual, err := p.setting(filepath.Join(p.name(), "contexts/lxc_contexts"), "file")
	if err != nil {
		return "", fmt.Errorf("find SELinux label of container files: %w", err)
	}
	parts := strings.SplitN(usual, ":", 4) // user, role, type, level
	if len(parts) < 3 {
		return "", fmt.Errorf("find SELinux label of container files: the policy gives %q", usual)
	}
	if o.User != "" {
		parts[0] = o.User
	}
	return strings.Join(append(parts[:3], o.Level), ":"), nil
}

// name is that of the policy in force, by which its folder goes.
func (p Policy) name() string {
	if name, err := p.setting("config", "SELINUXTYPE"); err == nil && name != "" {
		return name
	}
	return "targeted"
}

// setting reads one of the lines KEY = "VALUE" of a file; "" where there is none.
func (p Policy) setting(file, key string) (string, error) {
	dir := p.dir
	if dir == "" {
		dir = "/etc/selinux"
	}
	f, err := os.Open(filepath.Join(dir, file))
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		if name, value, ok := strings.Cut(lines.Text(), "="); ok && strings.TrimSpace(name) == key {
			return strings.Trim(strings.TrimSpace(value), `"`), nil
		}
	}
	return "", lines.Err()
}
