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

// SELinuxPolicy reads from the node's SELinux policy how files of containers are labelled. The zero value
// reads /etc/selinux.
type SELinuxPolicy struct{ dir string }

// FileLabel is the label of the files of a process with these options. It is "" if they have no
// level: then the runtime chooses one when it creates the container.
func (p SELinuxPolicy) FileLabel(o *v1.SELinuxOptions) (string, error) {
	if o == nil || o.Level == "" {
		return "", nil
	}
	usual, err := p.setting(filepath.Join(p.name(), "contexts/lxc_contexts"), "file")
	if err != nil {
		return "", fmt.Errorf("find SELinux label of container files: %w", err)
	}
	parts := strings.SplitN(usual, ":", 4) // user, role, type, level
	if len(parts) < 3 {
		return "", fmt.Errorf("find SELinux label of container files: invalid label %q in the policy", usual)
	}
	if o.User != "" {
		parts[0] = o.User
	}
	return strings.Join(append(parts[:3], o.Level), ":"), nil
}

// name is the name of the active policy, which is also that of its directory.
func (p SELinuxPolicy) name() string {
	if name, err := p.setting("config", "SELINUXTYPE"); err == nil && name != "" {
		return name
	}
	return "targeted"
}

// setting reads the value of a line KEY = "VALUE" of a file; "" if there is none.
func (p SELinuxPolicy) setting(file, key string) (string, error) {
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
