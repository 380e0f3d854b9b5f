package runtime

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"

	v1 "k8s.io/api/core/v1"

	"swiftlet/internal/pod"
)

// hostsPath returns the path of the pod's hosts file on the node.
func (r *Runtime) hostsPath(p *v1.Pod) string {
	return filepath.Join(r.cfg.RootDir, "pods", string(p.UID), "etc-hosts")
}

// containerDir returns the directory of one container's files on the node.
func (r *Runtime) containerDir(uid, container string) string {
	return filepath.Join(r.cfg.RootDir, "pods", uid, "containers", container)
}

func (r *Runtime) podLogDir(ref pod.Ref) string {
	return filepath.Join(r.cfg.PodLogsDir, ref.LogDirName())
}

// logPath returns the path of a container's log, relative to its pod's log directory.
func logPath(container string, restartCount int) string {
	return filepath.Join(container, strconv.Itoa(restartCount)+".log")
}

// maxFileName is the longest file name of common file systems.
const maxFileName = 255

// logLink returns the symlink under which log collectors find a container's log.
func (r *Runtime) logLink(ref pod.Ref, container, id string) string {
	return filepath.Join(r.cfg.ContainerLogsDir, shortened(ref.FullName()+"_"+container+"-"+id)+".log")
}

// logLinkPrefix begins the names of the links to all logs of a pod.
func logLinkPrefix(ref pod.Ref) string { return shortened(ref.FullName() + "_") }

// shortened cuts off what makes the name of a link too long.
func shortened(name string) string { return name[:min(len(name), maxFileName-len(".log"))] }

var numberedLog = regexp.MustCompile(`^(\d+)\.log(\..*)?`)

// nextLogNumber returns the restart count of the next instance when the runtime has no earlier
// one, as after a reboot: one above the newest log, so that no log is overwritten.
func (r *Runtime) nextLogNumber(ref pod.Ref, container string) (int, error) {
	files, err := os.ReadDir(filepath.Join(r.podLogDir(ref), container))
	if os.IsNotExist(err) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("list container logs: %w", err)
	}
	next := 0
	for _, f := range files {
		match := numberedLog.FindStringSubmatch(f.Name())
		if match == nil || f.IsDir() {
			continue
		}
		if n, err := strconv.Atoi(match[1]); err == nil {
			next = max(next, n+1)
		}
	}
	return next, nil
}
