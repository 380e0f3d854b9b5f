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

// Machine says what to run, and on how large a machine.
type Machine struct {
	Command []string
	Dir     string   // working directory
	Env     []string // as os.Environ gives it
	// MemoryMiB and SwapMiB are the machine's; no swap is the default.
	MemoryMiB int
	SwapMiB   int
	// Shared is a folder of the host that the machine may write to; "" for none.
	Shared string
	// Systemd is the machine's first process, and a bus runs; the command is a service.
	Systemd bool
	Network *Network  // nil for loopback alone
	Out     io.Writer // takes what the command writes
}

// Network is the machine's interface eth0.
type Network struct {
	Interface string // of the host: what one sends the other receives
	Address   string // with the length of its prefix
	Gateway   string
}

// Run boots the machine, runs the command on it and returns its exit code. The machine ends
// with the command, and at the latest with ctx; the error of one that ended in any other way
// shows what was last on its console.
func Run(ctx context.Context, m Machine) (code int, err error) {
	kernel, err := exec.LookPath("linux.uml")
	if err != nil {
		return 0, fmt.Errorf("find the kernel (run hack/install-deps.sh): %w", err)
	}
	job, err := os.MkdirTemp("", "uml")
	if err != nil {
		return 0, fmt.Errorf("make the job's folder: %w", err)
	}
	defer os.RemoveAll(job)
	if err := m.write(job); err != nil {
		return 0, fmt.Errorf("write the job: %w", err)
	}
	console, err := m.boot(ctx, kernel, job)
	if err == nil {
		code, err = readCode(filepath.Join(job, "code"))
	}
	if err != nil {
		return 0, fmt.Errorf("%w; the machine's console:\n%s", err, tail(console, 8<<10))
	}
	return code, nil
}

// write fills the job's folder with what the machine reads.
func (m Machine) write(job string) error {
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
		os.WriteFile(filepath.Join(job, "run.sh"), run.Bytes(), 0o600),
		os.WriteFile(filepath.Join(job, "init.sh"), initScript, 0o755),
	)
	if err == nil && m.SwapMiB > 0 {
		swap := filepath.Join(job, "swap")
		err = errors.Join(os.WriteFile(swap, nil, 0o600), os.Truncate(swap, int64(m.SwapMiB)<<20))
	}
	return err
}

// boot runs the kernel to its end. It is the first process of a pid namespace, so that the
// processes it keeps for those of the machine end with it, whatever ends it.
func (m Machine) boot(ctx context.Context, kernel, job string) (console []byte, err error) {
	read, write, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("boot: %w", err)
	}
	defer read.Close()
	args := append(m.options(job),
		"root=/dev/root", "rootfstype=hostfs", "rootflags=/", "ro", "init="+filepath.Join(job, "init.sh"),
		"mem="+strconv.Itoa(m.MemoryMiB)+"M", "uml_dir="+job+"/", "umid=machine", "JOB="+job,
		"con=null", "con0=null,fd:1", "ssl=null", "ssl0=null,fd:3", // standard output is the console
	)
	cmd := exec.CommandContext(ctx, kernel, args...)
	if cmd.Env, err = environment(ctx, job); err != nil {
		return nil, fmt.Errorf("boot: %w", err)
	}
	var log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &log, &log
	cmd.ExtraFiles = []*os.File{write}
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID, Pdeathsig: syscall.SIGKILL}
	runtime.LockOSThread() // the death signal is tied to the thread
	defer runtime.UnlockOSThread()
	err = cmd.Start()
	write.Close()
	if err != nil {
		return nil, fmt.Errorf("boot: %w", err)
	}
	_, copied := io.Copy(m.Out, read) // until the kernel ends
	err = cmd.Wait()
	if ended := context.Cause(ctx); ended != nil {
		return log.Bytes(), fmt.Errorf("the machine was ended: %w", ended)
	}
	if err != nil {
		return log.Bytes(), fmt.Errorf("run the machine: %w", err)
	}
	if copied != nil {
		return log.Bytes(), fmt.Errorf("pass on the output: %w", copied)
	}
	return log.Bytes(), nil
}

// options are the kernel's parameters for what not every machine has.
func (m Machine) options(job string) (args []string) {
	if m.Shared != "" {
		args = append(args, "SHARED="+m.Shared)
	}
	if m.SwapMiB > 0 {
		args = append(args, "ubda="+filepath.Join(job, "swap"))
	}
	if m.Systemd {
		args = append(args, "SYSTEMD=yes")
	}
	if n := m.Network; n != nil {
		// Packets come as the host's kernel has them, several in one; gro takes them so.
		args = append(args, "vec0:transport=raw,gro=1,ifname="+n.Interface, "ADDRESS="+n.Address, "GATEWAY="+n.Gateway)
	}
	return args
}

func readCode(file string) (int, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return 0, fmt.Errorf("the machine ended without an exit code: %w", err)
	}
	return strconv.Atoi(strings.TrimSpace(string(text)))
}

func tail(text []byte, length int) []byte { return text[max(0, len(text)-length):] }

// quote makes one word of a shell's.
func quote(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

// isName reports whether a shell can set a variable of that name.
func isName(name string) bool {
	for i, r := range name {
		letter := r == '_' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z'
		if !letter && (i == 0 || r < '0' || r > '9') {
			return false
		}
	}
	return name != ""
}
