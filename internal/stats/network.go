package stats

import (
	"bytes"
	"errors"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// isNoDevice reports the error of reading an open file of a cgroup or process that is gone.
func isNoDevice(err error) bool { return errors.Is(err, unix.ENODEV) || errors.Is(err, unix.ESRCH) }

// traffic is the counters of one network interface.
type traffic struct {
	name                                    string
	rxBytes, rxPackets, rxErrors, rxDropped uint64
	txBytes, txPackets, txErrors, txDropped uint64
}

// defaultInterface is the one whose counters the API shows for the pod or node as a whole.
const defaultInterface = "eth0"

// readNetwork reads the interfaces in the network namespace of a process, in the kernel's order.
func readNetwork(s *fileReader, pid string) ([]traffic, error) {
	text, err := s.read("/proc/" + pid + "/net/dev")
	if err != nil {
		return nil, err
	}
	return parseNetwork(text), nil
}

func networkOf(s *fileReader, pid int) ([]traffic, error) { return readNetwork(s, strconv.Itoa(pid)) }

// parseNetwork parses /proc/PID/net/dev: two header lines, then for each interface a name,
// eight receive counters and eight transmit counters.
func parseNetwork(text []byte) []traffic {
	var all []traffic
	for line := range bytes.Lines(text) {
		name, rest, found := bytes.Cut(line, []byte{':'})
		fields := bytes.Fields(rest)
		if !found || len(fields) < 12 {
			continue
		}
		t := traffic{name: string(bytes.TrimSpace(name))}
		if isInternal(t.name) {
			continue
		}
		for i, into := range map[int]*uint64{
			0: &t.rxBytes, 1: &t.rxPackets, 2: &t.rxErrors, 3: &t.rxDropped,
			8: &t.txBytes, 9: &t.txPackets, 10: &t.txErrors, 11: &t.txDropped,
		} {
			*into, _ = parseUint(fields[i])
		}
		all = append(all, t)
	}
	return all
}

// isInternal reports whether an interface leads to the machine itself or its containers; their
// traffic is counted elsewhere.
func isInternal(name string) bool {
	for _, prefix := range []string{"lo", "veth", "docker", "nerdctl"} {
		if strings.HasPrefix(strings.ToLower(name), prefix) {
			return true
		}
	}
	return false
}
