package uml

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
)

//go:embed init.sh
var initScript []byte

// Machine has the command to run and the size of the machine.
type Machine struct {
	Command []string
	Dir     string   // working directory
	Env     []string // in the form of os.Environ
	// MemoryMiB and SwapMiB are the machine's memory and swap. The default is no swap.
	MemoryMiB int
	SwapMiB   int
	// Shared is a directory of the host that the machine may write to; "" for none.
	Shared string
	// Systemd runs systemd as PID 1 with D-Bus, and the command as a service.
	Systemd bool
	// Number chooses the CPU of the host. Machines of one process should have different numbers.
	Number  int
	Network *Network  // nil for loopback only
	Out     io.Writer // output of the command
}

// Network is the machine's interface eth0.
type Network struct {
	Interface string // interface of the host that eth0 is connected to
	Address   string // with prefix length
	Gateway   string
}

// Run boots the machine, runs the command on it and returns its exit code. The machine stops when the
// command has exited or ctx is done. If it stops in any other way, the error has the end of its
// console.
func Run(ctx context.Context, m Machine) (code int, err error) {
	kernel, err := exec.LookPath("linux.uml")
	if err != nil {
		return 0, fmt.Errorf("find user-mode Linux (run hack/install-deps.sh): %w", err)
	}
	jobDir, err := os.MkdirTemp("", "uml")
	if err != nil {
		return 0, fmt.Errorf("make job directory: %w", err)
	}
	defer os.RemoveAll(jobDir)
	if err := m.write(jobDir); err != nil {
		return 0, fmt.Errorf("write job: %w", err)
	}
	console, err := m.boot(ctx, kernel, jobDir)
	if err == nil {
		code, err = readCode(filepath.Join(jobDir, "code"))
	}
	if err != nil {
		return 0, fmt.Errorf("%w; end of the console:\n%s", err, tail(console, 8<<10))
	}
	return code, nil
}

// write writes the scripts and the swap file of the machine to the job directory.
func (m Machine) write(jobDir string) error {
	var run bytes.Buffer
	for _, pair := range m.Env {
		if name, value, ok := strings.Cut(pair, "="); ok && isName(name) && name != "TMPDIR" {
			fmt.Fprintf(&run, "export %s=%s\n", name, quote(value))
		}
	}
	fmt.Fprintf(&run, "cd %s\nexec", quote(m.Dir))
	for _, word := range m.Command {
		run.WriteString(" " + quote(word))
	}
	run.WriteString("\n")
	err := errors.Join(
		os.WriteFile(filepath.Join(jobDir, "run.sh"), run.Bytes(), 0o600),
		os.WriteFile(filepath.Join(jobDir, "init.sh"), initScript, 0o755),
	)
	if err == nil && m.SwapMiB > 0 {
		swap := filepath.Join(jobDir, "swap")
		err = errors.Join(os.WriteFile(swap, nil, 0o600), os.Truncate(swap, int64(m.SwapMiB)<<20))
	}
	return err
}

// boot runs the kernel until it stops. The kernel is PID 1 of a pid namespace, so that all its
// processes are killed with it.
func (m Machine) boot(ctx context.Context, kernel, jobDir string) (console []byte, err error) {
	read, write, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("boot: %w", err)
	}
	defer read.Close()
	args := append(m.options(jobDir),
		"root=/dev/root", "rootfstype=hostfs", "rootflags=/", "ro", "init="+filepath.Join(jobDir, "init.sh"),
		"mem="+strconv.Itoa(m.MemoryMiB)+"M", "uml_dir="+jobDir+"/", "umid=machine", "JOB="+jobDir,
		"con=null", "con0=null,fd:1", "ssl=null", "ssl0=null,fd:3", // standard output is the console
	)
	cmd := exec.CommandContext(ctx, kernel, args...)
	if cmd.Env, err = environment(ctx, jobDir); err != nil {
		return nil, fmt.Errorf("boot: %w", err)
	}
	var log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &log, &log
	cmd.ExtraFiles = []*os.File{write}
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID, Pdeathsig: syscall.SIGKILL}
	runtime.LockOSThread() // Pdeathsig is tied to the thread, and so are its CPUs
	defer runtime.UnlockOSThread()
	err = startOnOneCPU(cmd, os.Getpid()+m.Number)
	write.Close()
	if err != nil {
		return nil, fmt.Errorf("boot: %w", err)
	}
	_, copyErr := io.Copy(m.Out, read) // until the kernel stops
	err = cmd.Wait()
	if cause := context.Cause(ctx); cause != nil {
		return log.Bytes(), fmt.Errorf("run machine: killed: %w", cause)
	}
	if err != nil {
		return log.Bytes(), fmt.Errorf("run machine: %w", err)
	}
	if copyErr != nil {
		return log.Bytes(), fmt.Errorf("copy output: %w", copyErr)
	}
	return log.Bytes(), nil
}

// options are the kernel parameters of optional devices.
func (m Machine) options(jobDir string) (args []string) {
	if m.Shared != "" {
		args = append(args, "SHARED="+m.Shared)
	}
	if m.SwapMiB > 0 {
		args = append(args, "ubda="+filepath.Join(jobDir, "swap"))
	}
	if m.Systemd {
		args = append(args, "SYSTEMD=yes")
	}
	if n := m.Network; n != nil {
		// The host's kernel passes merged packets; gro accepts them.
		args = append(args, "vec0:transport=raw,gro=1,ifname="+n.Interface, "ADDRESS="+n.Address, "GATEWAY="+n.Gateway)
	}
	return args
}

func readCode(file string) (int, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return 0, fmt.Errorf("read exit code: %w", err)
	}
	return strconv.Atoi(strings.TrimSpace(string(text)))
}

func tail(text []byte, length int) []byte { return text[max(0, len(text)-length):] }

// quote quotes text for a shell.
func quote(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

// isName reports whether name is a valid name of a shell variable.
func isName(name string) bool {
	for i, r := range name {
		letter := r == '_' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z'
		if !letter && (i == 0 || r < '0' || r > '9') {
			return false
		}
	}
	return name != ""
}
