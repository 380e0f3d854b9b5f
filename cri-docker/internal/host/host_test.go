package host

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func limitsOf(t *testing.T, bounding string, oom int) (*Limits, *bytes.Buffer) {
	t.Helper()
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	var log bytes.Buffer
	l, err := readLimits(slog.New(slog.NewTextHandler(&log, nil)), write("status", "Name:\tx\nCapBnd:\t"+bounding+"\n"),
		write("oom", fmt.Sprintln(oom)), write("last", "40\n"))
	if err != nil {
		t.Fatal(err)
	}
	return l, &log
}

func TestLimitsClampAndLogOnce(t *testing.T) {
	l, log := limitsOf(t, "000001fffeffffff", -5) // all but SYS_RESOURCE
	for value, want := range map[int]int{-998: -5, -5: -5, 3: 3, 1000: 1000} {
		if got := l.OOMScoreAdj(value); got != want {
			t.Errorf("oom_score_adj %d becomes %d; want %d", value, got, want)
		}
	}
	l.OOMScoreAdj(-999)
	if n := strings.Count(log.String(), "\n"); n != 1 {
		t.Errorf("%d lines of log; want one: %s", n, log)
	}
	if l.Complete() || len(l.Capabilities) != 37 {
		t.Errorf("%d capabilities, complete %v; want 37 and false", len(l.Capabilities), l.Complete())
	}
}

func TestLimitsOfFullRoot(t *testing.T) {
	l, log := limitsOf(t, "000001ffffffffff", 0)
	if l.OOMScoreAdj(-998) != -998 || !l.Complete() || log.Len() > 0 {
		t.Errorf("a process with all capabilities is limited: %s", log)
	}
}

func TestCgroupDir(t *testing.T) {
	text := "11:hugetlb:/a\n3:cpu,cpuacct:/b\n1:name=systemd:/c\n0::/d\n"
	for file, want := range map[string]string{
		"hugetlb.2MB.limit_in_bytes": "/r/hugetlb/a", "cpu.shares": "/r/cpu/b",
		"pids.max": "controller pids is not mounted", "../x": `"../x" is not a cgroup file`, "x": `"x" is not a cgroup file`,
	} {
		got, err := cgroupDir("/r", text, file)
		if err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s: %s; want %s", file, got, want)
		}
	}
	root := t.TempDir()
	if err := os.WriteFile(filepath.Join(root, "cgroup.controllers"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := cgroupDir(root, "0::/d\n", "memory.high"); err != nil || got != root+"/d" {
		t.Errorf("cgroup v2: %s, %v", got, err)
	}
}
