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
	for _, pid := range pids {
		files, sockets := openFiles(pid)
		t.files += files
		t.sockets += sockets
	}
	t.openFiles = openFilesLimit(s, t.first)
}

// fdBatch is how many names are read at once: a process may have a million open files.
const fdBatch = 1024

// openFiles counts the open files of a process.
func openFiles(pid int) (files, sockets uint64) {
	dir, err := os.Open("/proc/" + strconv.Itoa(pid) + "/fd")
	if err != nil {
		return 0, 0
	}
	defer dir.Close()
	var target [16]byte
	for {
		names, err := dir.Readdirnames(fdBatch)
		for _, name := range names {
			files++
			n, err := unix.Readlinkat(int(dir.Fd()), name, target[:])
			if err == nil && bytes.HasPrefix(target[:n], []byte("socket:")) {
				sockets++
			}
		}
		if err != nil {
			return files, sockets
		}
	}
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
