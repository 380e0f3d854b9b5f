// Package host knows what this machine's kernel allows, and reads and writes what Docker has no API for.
package host

import (
	"bufio"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// capabilities in the order of their numbers in linux/capability.h. Older engines do not know later ones, which
// are parts of SYS_ADMIN.
var capabilities = []string{
	"CHOWN", "DAC_OVERRIDE", "DAC_READ_SEARCH", "FOWNER", "FSETID", "KILL", "SETGID", "SETUID", "SETPCAP",
	"LINUX_IMMUTABLE", "NET_BIND_SERVICE", "NET_BROADCAST", "NET_ADMIN", "NET_RAW", "IPC_LOCK", "IPC_OWNER",
	"SYS_MODULE", "SYS_RAWIO", "SYS_CHROOT", "SYS_PTRACE", "SYS_PACCT", "SYS_ADMIN", "SYS_BOOT", "SYS_NICE",
	"SYS_RESOURCE", "SYS_TIME", "SYS_TTY_CONFIG", "MKNOD", "LEASE", "AUDIT_WRITE", "AUDIT_CONTROL", "SETFCAP",
	"MAC_OVERRIDE", "MAC_ADMIN", "SYSLOG", "WAKE_ALARM", "BLOCK_SUSPEND", "AUDIT_READ",
}

// Limits are what the kernel refuses here, as in a container without all capabilities. Docker is assumed to
// run with the capabilities of this process: it does not report its own.
type Limits struct {
	oomFloor     int      // lower oom_score_adj values are refused
	Capabilities []string // those that a container can get
	complete     bool     // all that the kernel has

	log  *slog.Logger
	once sync.Map // what was logged
}

// ReadLimits reads the limits of this process.
func ReadLimits(log *slog.Logger) (*Limits, error) {
	return readLimits(log, "/proc/self/status", "/proc/self/oom_score_adj", "/proc/sys/kernel/cap_last_cap")
}

func readLimits(log *slog.Logger, status, oom, last string) (*Limits, error) {
	bounding, err := boundingSet(status)
	if err != nil {
		return nil, err
	}
	lastCap, err := readInt(last)
	if err != nil {
		return nil, err
	}
	own, err := readInt(oom)
	if err != nil {
		return nil, err
	}
	l := &Limits{oomFloor: -1000, complete: true, log: log}
	for number := range lastCap + 1 {
		switch {
		case bounding&(1<<number) == 0:
			l.complete = false
		case number < len(capabilities):
			l.Capabilities = append(l.Capabilities, capabilities[number])
		}
	}
	if !slices.Contains(l.Capabilities, "SYS_RESOURCE") {
		l.oomFloor = own
	}
	return l, nil
}

// OOMScoreAdj is the value, or the lowest that the kernel accepts.
func (l *Limits) OOMScoreAdj(value int) int {
	if value >= l.oomFloor {
		return value
	}
	l.logOnce("lower oom_score_adj is refused without CAP_SYS_RESOURCE, using the lowest possible", "floor", l.oomFloor)
	return l.oomFloor
}

// Complete says whether a container can have all capabilities. Docker cannot start a privileged one otherwise.
func (l *Limits) Complete() bool {
	if !l.complete {
		l.logOnce("this machine does not have all capabilities, privileged containers get those it has")
	}
	return l.complete
}

// logOnce logs a message the first time only.
func (l *Limits) logOnce(message string, args ...any) {
	if _, logged := l.once.LoadOrStore(message, true); !logged {
		l.log.Warn(message, args...)
	}
}

func boundingSet(file string) (uint64, error) {
	f, err := os.Open(file)
	if err != nil {
		return 0, fmt.Errorf("read capabilities: %w", err)
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		if value, ok := strings.CutPrefix(lines.Text(), "CapBnd:"); ok {
			set, err := strconv.ParseUint(strings.TrimSpace(value), 16, 64)
			if err != nil {
				return 0, fmt.Errorf("read capabilities: %s: %w", file, err)
			}
			return set, nil
		}
	}
	return 0, fmt.Errorf("read capabilities: no line CapBnd in %s", file)
}

func readInt(file string) (int, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return 0, fmt.Errorf("read number: %w", err)
	}
	value, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return 0, fmt.Errorf("read number in %s: %w", file, err)
	}
	return value, nil
}
