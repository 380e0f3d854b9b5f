package stats

import (
	"bytes"
	"errors"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// isNoDevice: a cgroup or a process that ends while its file is open answers so.
func isNoDevice(err error) bool { return errors.Is(err, unix.ENODEV) || errors.Is(err, unix.ESRCH) }

// traffic is what went through one interface.
type traffic struct {
	name                                    string
	rxBytes, rxPackets, rxErrors, rxDropped uint64
	txBytes, txPackets, txErrors, txDropped uint64
}

// mainInterface is the one that stands for a pod or a node where one must.
const mainInterface = "eth0"

// readNetwork reads the interfaces that a process sees, in the kernel's order.
func readNetwork(s *scratch, pid string) ([]traffic, error) {
	text, err := s.read("/proc/" + pid + "/net/dev")
	if err != nil {
		return nil, err
	}
	return parseNetwork(text), nil
}

func networkOf(s *scratch, pid int) ([]traffic, error) { return readNetwork(s, strconv.Itoa(pid)) }

// parseNetwork reads /proc/PID/net/dev, where each line after the two of the heading is a
// name, eight numbers of what was received and eight of what was sent.
func parseNetwork(text []byte) []traffic {
	var all []traffic
	for line := range bytes.Lines(text) {
		name, rest, found := bytes.Cut(line, []byte{':'})
		fields := bytes.Fields(rest)
		if !found || len(fields) < 12 {
			continue
		}
		t := traffic{name: string(bytes.TrimSpace(name))}
		if inner(t.name) {
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

// inner interfaces lead to the machine itself or to its containers: what passes them is
// counted elsewhere.
func inner(name string) bool {
	for _, prefix := range []string{"lo", "veth", "docker", "nerdctl"} {
		if strings.HasPrefix(strings.ToLower(name), prefix) {
			return true
		}
	}
	return false
}
