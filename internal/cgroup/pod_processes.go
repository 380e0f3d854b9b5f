package cgroup

import (
	"fmt"
	"slices"

	"github.com/prometheus/procfs"
	"k8s.io/apimachinery/pkg/types"

	"swiftlet/internal/why"
)

// PodProcesses lists the processes in the pod's cgroup, by PID. Those that exit meanwhile are left out.
func (t *Tree) PodProcesses(uid types.UID) ([]why.Process, error) {
	var dirs []string
	for _, class := range t.qosCgroups() {
		dirs = append(dirs, t.existingDirs(class.child(podPrefix+string(uid)))...)
	}
	pids, err := listProcesses(dirs)
	if err != nil {
		return nil, fmt.Errorf("list processes of pod %s: %w", uid, err)
	}
	slices.Sort(pids)
	var all []why.Process
	for _, pid := range pids {
		p, err := procfs.NewProc(pid)
		if err != nil {
			continue
		}
		stat, err := p.Stat()
		if err != nil {
			continue
		}
		all = append(all, why.Process{PID: pid, Name: stat.Comm, State: stat.State})
	}
	return all, nil
}
