package e2e

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// canaryDirs are the directories that the agent writes to.
var canaryDirs = []string{"/var/lib/kubelet", "/var/log/pods", "/var/log/containers", "/etc/kubernetes", "/run"}

// canarySkipped are files of other programs: the runtime's, and the test's CSI driver.
var canarySkipped = []string{"/run/containerd", "/var/lib/kubelet/plugins/canary.csi.test", "/run/netns"}

// canaryPlaces are the files that should have a secret: a pattern of path.Match, the names of the secrets,
// the permissions they may have at most, and whether they must not be on a disk.
var canaryPlaces = []struct {
	pattern string
	secrets string
	mode    fs.FileMode
	memory  bool
}{
	{"/var/lib/kubelet/pods/*/volumes/kubernetes.io~secret/secret/*/key", "volume", 0o400, true},
	{"/var/lib/kubelet/pods/*/volume-subpaths/secret/*/*", "volume", 0o400, true},
	// The directory of the pod keeps others out; the mode is what the pod's users need.
	{"/var/lib/kubelet/pods/*/volumes/kubernetes.io~projected/kube-api-access-*/*/token", "token of the pod", 0o644, true},
	{"/etc/kubernetes/kubelet.kubeconfig", "key of the kubeconfig", 0o600, false},
	{"/etc/kubernetes/pki/node.key", "serving key", 0o644, false}, // the test writes it
}

// searchFiles searches the files of the node, as it sees them.
func (c *canary) searchFiles(t *testing.T, found map[string]bool) {
	t.Helper()
	expected := map[string]bool{}
	root := c.node.Inside("/")
	for _, dir := range canaryDirs {
		err := filepath.WalkDir(filepath.Join(root, dir), func(file string, entry fs.DirEntry, err error) error {
			if errors.Is(err, fs.ErrNotExist) {
				return nil // it was removed meanwhile
			}
			if err != nil {
				return err
			}
			inside := "/" + strings.TrimPrefix(strings.TrimPrefix(file, root), "/")
			if isBelow(inside, canarySkipped) {
				return fs.SkipDir
			}
			if !entry.Type().IsRegular() {
				return nil
			}
			text, err := readStart(file)
			if err != nil {
				return err
			}
			here := map[string]bool{}
			c.search(inside, text, here)
			for where := range here {
				if place := c.checkPlace(t, where, inside, file); place != "" {
					expected[place] = true
				} else {
					found[where] = true
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, place := range canaryPlaces {
		if !expected[place.pattern] {
			t.Errorf("no file %s has %s: the search does not find what it should", place.pattern, place.secrets)
		}
	}
	c.checkPodDirs(t, root)
}

// checkPlace returns the pattern of the place where the file should have the secret, after it checked its
// mode, or "".
func (c *canary) checkPlace(t *testing.T, where, inside, file string) string {
	t.Helper()
	for _, place := range canaryPlaces {
		if matched, _ := path.Match(place.pattern, inside); !matched || !strings.HasPrefix(where, place.secrets+" in ") {
			continue
		}
		info, err := os.Stat(file)
		if err != nil {
			t.Error(err)
			return place.pattern
		}
		if info.Mode().Perm()&^place.mode != 0 {
			t.Errorf("%s: mode %v, want at most %v", inside, info.Mode().Perm(), place.mode)
		}
		var on unix.Statfs_t
		if err := unix.Statfs(file, &on); err != nil {
			t.Error(err)
		}
		if place.memory && on.Type != unix.TMPFS_MAGIC {
			t.Errorf("%s is on a disk, want in memory", inside)
		}
		return place.pattern
	}
	return ""
}

// checkPodDirs checks that only root can enter the directories of pods.
func (c *canary) checkPodDirs(t *testing.T, root string) {
	t.Helper()
	dirs, err := filepath.Glob(filepath.Join(root, "/var/lib/kubelet/pods/*"))
	if err != nil || len(dirs) == 0 {
		t.Fatalf("there are no directories of pods: %v", err)
	}
	for _, dir := range append(dirs, filepath.Join(root, "/var/lib/kubelet/pods")) {
		info, err := os.Stat(dir)
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm()&0o007 != 0 {
			t.Errorf("%s: mode %v, want none for others", dir, info.Mode().Perm())
		}
	}
}

func isBelow(file string, dirs []string) bool {
	for _, dir := range dirs {
		if file == dir || strings.HasPrefix(file, dir+"/") {
			return true
		}
	}
	return false
}

// readStart reads a file, of a large one the first part.
func readStart(file string) ([]byte, error) {
	f, err := os.Open(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("search file: %w", err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, 8<<20))
	if err != nil {
		return nil, nil // a file of the kernel that cannot be read
	}
	return text, nil
}
