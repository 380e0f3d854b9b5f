package bench

import (
	"bufio"
	"context"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/prometheus/procfs"
	"golang.org/x/sys/unix"
)

// describe returns what a reader must know to compare the figures with others.
func (c *cluster) describe(ctx context.Context, config Config) (About, error) {
	about := About{Date: time.Now().UTC().Truncate(time.Second), Quick: config.Quick, Smoke: config.Smoke, Rounds: config.Rounds, Versions: map[string]string{"go": runtime.Version()}}
	var err error
	if about.Machine, err = ReadMachine(); err != nil {
		return about, err
	}
	if about.Commit, err = firstLine(ctx, "git", "rev-parse", "--short=12", "HEAD"); err != nil {
		about.Commit = "unknown" // a source archive has no commit
	}
	programs := map[string][]string{
		"reference":  {filepath.Join(c.bed.ToolDir(), "kubelet"), "--version"},
		"apiserver":  {filepath.Join(c.bed.ToolDir(), "kube-apiserver"), "--version"},
		"containerd": {filepath.Join(c.bed.BundleDir(), "containerd"), "--version"},
		"runc":       {filepath.Join(c.bed.BundleDir(), "runc"), "--version"},
		"swiftlet":   {c.program, "version"},
	}
	for name, argv := range programs {
		line, err := firstLine(ctx, argv...)
		if err != nil {
			return about, err
		}
		about.Versions[name] = versionIn(line)
	}
	return about, nil
}

func firstLine(ctx context.Context, argv ...string) (string, error) {
	out, err := exec.CommandContext(ctx, argv[0], argv[1:]...).Output()
	if err != nil {
		return "", fmt.Errorf("run %s: %w", filepath.Base(argv[0]), err)
	}
	line, _, _ := strings.Cut(string(out), "\n")
	return line, nil
}

// versionIn returns the word of a line that looks like a version.
func versionIn(line string) string {
	for _, word := range strings.Fields(line) {
		plain := strings.TrimPrefix(word, "v")
		if plain != "" && plain[0] >= '0' && plain[0] <= '9' {
			return word
		}
	}
	return line[strings.LastIndexByte(line, ' ')+1:]
}

// ReadMachine describes this machine.
func ReadMachine() (Machine, error) {
	proc, err := procfs.NewDefaultFS()
	if err != nil {
		return Machine{}, fmt.Errorf("describe machine: %w", err)
	}
	info, err := proc.Meminfo()
	if err != nil {
		return Machine{}, fmt.Errorf("describe machine: %w", err)
	}
	var kernel unix.Utsname
	if err := unix.Uname(&kernel); err != nil {
		return Machine{}, fmt.Errorf("describe machine: %w", err)
	}
	m := Machine{CPU: cpuModel(), Cores: runtime.NumCPU(), Kernel: unix.ByteSliceToString(kernel.Release[:])}
	if info.MemTotal != nil {
		m.Memory = math.Round(float64(*info.MemTotal) * 1024 / 1e9)
	}
	return m, nil
}

// cpuModel is the name of the CPU; its architecture where the kernel has no name.
func cpuModel() string {
	file, err := os.Open("/proc/cpuinfo")
	if err != nil {
		return runtime.GOARCH
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		if name, value, found := strings.Cut(lines.Text(), ":"); found && strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return runtime.GOARCH
}
