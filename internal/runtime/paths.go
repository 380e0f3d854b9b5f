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

// hostsPath is the pod's hosts file on the node.
func (r *Runtime) hostsPath(p *v1.Pod) string {
	return filepath.Join(r.cfg.RootDir, "pods", string(p.UID), "etc-hosts")
}

// containerDir holds the files of one container on the node.
func (r *Runtime) containerDir(uid, container string) string {
	return filepath.Join(r.cfg.RootDir, "pods", uid, "containers", container)
}

func (r *Runtime) podLogDir(ref pod.Ref) string {
	return filepath.Join(r.cfg.PodLogsDir, ref.LogDirName())
}

// logPath is a container's log relative to its pod's log directory.
func logPath(container string, restartCount int) string {
	return filepath.Join(container, strconv.Itoa(restartCount)+".log")
}

// maxFileName is the longest name that common file systems take.
const maxFileName = 255

// logLink is the name under which log collectors know a container's log.
func (r *Runtime) logLink(ref pod.Ref, container, id string) string {
	name := ref.FullName() + "_" + container + "-" + id
	if limit := maxFileName - len(".log"); len(name) > limit {
		name = name[:limit]
	}
	return filepath.Join(r.cfg.ContainerLogsDir, name+".log")
}

var numberedLog = regexp.MustCompile(`^(\d+)\.log(\..*)?`)

// restartsByLogs is the restart count to go on with when the runtime has forgotten a
// container's earlier instances, as after a reboot: one above the newest log, so that no
// log is written over.
func (r *Runtime) restartsByLogs(ref pod.Ref, container string) (int, error) {
	files, err := os.ReadDir(filepath.Join(r.podLogDir(ref), container))
	if os.IsNotExist(err) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("count restarts by logs: %w", err)
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
