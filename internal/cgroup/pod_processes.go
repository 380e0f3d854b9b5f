package cgroup

import (
	"fmt"
	"slices"

	"github.com/prometheus/procfs"
	"k8s.io/apimachinery/pkg/types"

	"swiftlet/internal/why"
)

// maxDescribed is the number of processes whose name and state are read: a pod may have millions.
const maxDescribed = 1024

// PodProcesses lists the processes in the pod's cgroup, by PID. Those that exit meanwhile are left out. Of very many,
// some have only a PID.
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
	return describe(pids), nil
}

func describe(pids []int) (all []why.Process) {
	for i, pid := range pids {
		if i >= maxDescribed {
			all = append(all, why.Process{PID: pid})
			continue
		}
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
	return all
}
