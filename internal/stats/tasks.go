package stats

import (
	"bytes"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// readTasks counts the processes of a cgroup.procs file, and with deep their open files. A
// process may exit meanwhile, so nothing here is an error.
func readTasks(s *fileReader, procs string, t *taskUsage, d depth) {
	text, err := s.read(procs)
	if err != nil {
		return
	}
	var pids []int
	for line := range bytes.Lines(text) {
		if pid, ok := parseUint(bytes.TrimSpace(line)); ok && pid > 0 {
			pids = append(pids, int(pid)) // 0 is a process in another PID namespace
		}
	}
	t.processes = uint64(bytes.Count(text, []byte{'\n'}))
	if len(pids) == 0 {
		return
	}
	t.first = pids[0]
	if d != deep {
		return
	}
	budget := uint64(maxReadFiles)
	for _, pid := range pids {
		files, read, sockets := openFiles(pid, budget)
		t.files += files
		t.sockets += sockets
		budget -= read
	}
	t.openFiles = openFilesLimit(s, t.first)
}

const (
	// fdBatch is how many names are read at once: a process may have a million open files.
	fdBatch = 1024
	// maxReadFiles limits how many open files of a cgroup are read, to find its sockets: the processes of a pod
	// can have a hundred million.
	maxReadFiles = 64 * fdBatch
)

// openFiles counts the open files of a process, and the sockets among those that it reads, at most
// budget. Linux 6.2 and later reports the number of the others.
func openFiles(pid int, budget uint64) (files, read, sockets uint64) {
	dir, err := os.Open("/proc/" + strconv.Itoa(pid) + "/fd")
	if err != nil {
		return 0, 0, 0
	}
	defer dir.Close()
	if info, err := dir.Stat(); err == nil {
		files = uint64(max(info.Size(), 0))
	}
	var target [16]byte
	for read < budget {
		names, err := dir.Readdirnames(int(min(fdBatch, budget-read)))
		for _, name := range names {
			read++
			n, err := unix.Readlinkat(int(dir.Fd()), name, target[:])
			if err == nil && bytes.HasPrefix(target[:n], []byte("socket:")) {
				sockets++
			}
		}
		if err != nil {
			return read, read, sockets
		}
	}
	return max(files, read), read, sockets
}

// openFilesLimit is the soft limit of open files of a process: -1 if unlimited.
func openFilesLimit(s *fileReader, pid int) int64 {
	text, err := s.read("/proc/" + strconv.Itoa(pid) + "/limits")
	if err != nil {
		return 0
	}
	_, rest, found := bytes.Cut(text, []byte("Max open files"))
	fields := bytes.Fields(rest[:min(len(rest), 128)])
	if !found || len(fields) == 0 {
		return 0
	}
	if string(fields[0]) == "unlimited" {
		return -1
	}
	n, _ := parseUint(fields[0])
	return int64(n)
}
