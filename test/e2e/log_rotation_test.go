package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

// TestLogRotation: a container's log is rotated at about the configured size. As many files as
// configured are kept, all but the last two compressed. The container is not affected.
func TestLogRotation(t *testing.T) {
	t.Parallel()
	node, in := configuredNode(t, "rotating", "containerLogMaxSize: 256Ki\ncontainerLogMaxFiles: 4\ncontainerLogMonitorInterval: 3s\n"), namespace(t)
	p := sleeper("writer", node.Name())
	p.Spec.Containers[0].Command = []string{"sh", "-c",
		"i=0; while true; do i=$((i+1)); echo $i $(head -c 9000 /dev/zero | tr '\\0' x); done"}
	p = create(t, in, p)
	awaitPod(t, in, "writer", timeout, ready)

	dir := node.Path(fmt.Sprintf("/var/log/pods/%s_writer_%s/c", in, p.UID))
	packed := regexp.MustCompile(`^0\.log\.\d{8}-\d{6}(\.\d{9})?\.gz$`)
	eventually(t, timeout, func() string {
		entries, err := os.ReadDir(dir)
		if err != nil {
			return err.Error()
		}
		var names []string
		old := 0
		for _, e := range entries {
			names = append(names, e.Name())
			if packed.MatchString(e.Name()) {
				old++
			}
		}
		if old < 2 || len(names) > 5 { // four, and one while it is compressed
			return fmt.Sprintf("the log files are %v", names)
		}
		return ""
	})
	if info, err := os.Stat(filepath.Join(dir, "0.log")); err == nil && info.Size() > 64<<20 {
		t.Errorf("0.log has %d bytes", info.Size())
	}
	awaitPod(t, in, "writer", timeout, ready)
}
