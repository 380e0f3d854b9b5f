package swap

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/prometheus/procfs"
)

// Kubelet is a kubelet that runs on this host.
type Kubelet struct {
	PID     int
	Args    []string // without the program
	Started time.Time
}

// ErrNone means that no kubelet runs.
var ErrNone = errors.New("no kubelet runs on this host")

// Find finds the kubelet that runs on this host, the reference kubelet or Swiftlet. It ignores those of
// other mount namespaces, which are nodes of their own in containers.
func Find() (Kubelet, error) {
	processes, err := procfs.AllProcs()
	if err != nil {
		return Kubelet{}, fmt.Errorf("find kubelet: %w", err)
	}
	own, err := os.Readlink("/proc/self/ns/mnt")
	if err != nil {
		return Kubelet{}, fmt.Errorf("find kubelet: %w", err)
	}
	var found []Kubelet
	for _, p := range processes {
		line, _ := p.CmdLine() // the process may have ended
		args, isKubelet := kubeletArgs(line)
		namespace, _ := os.Readlink(fmt.Sprintf("/proc/%d/ns/mnt", p.PID))
		if !isKubelet || namespace != own || p.PID == os.Getpid() {
			continue
		}
		stat, err := p.Stat()
		if err != nil {
			continue
		}
		started, err := stat.StartTime()
		if err != nil {
			return Kubelet{}, fmt.Errorf("find kubelet: %w", err)
		}
		found = append(found, Kubelet{PID: p.PID, Args: args, Started: time.UnixMilli(int64(started * 1000))})
	}
	switch len(found) {
	case 0:
		return Kubelet{}, ErrNone
	case 1:
		return found[0], nil
	}
	return Kubelet{}, fmt.Errorf("find kubelet: %d run on this host, as processes %d and %d", len(found), found[0].PID, found[1].PID)
}

// kubeletArgs returns the arguments of a command line of a kubelet.
func kubeletArgs(line []string) (args []string, isKubelet bool) {
	switch {
	case len(line) == 0:
		return nil, false
	case filepath.Base(line[0]) == "kubelet":
		return line[1:], true
	case filepath.Base(line[0]) == "swiftlet" && len(line) > 1 && line[1] == "kubelet":
		return slices.Clone(line[2:]), true
	}
	return nil, false
}
