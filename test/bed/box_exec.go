package bed

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// joinCgroups is a shell command that moves a program to the box's cgroups. nsenter alone leaves
// it in the host's.
const joinCgroups = `for f in /sys/fs/cgroup/*/cgroup.procs; do echo 0 > "$f" || exit; done; exec "$@"`

// Command returns a command that runs argv in the box's namespaces.
func (b *Box) Command(ctx context.Context, argv ...string) *exec.Cmd {
	args := []string{"--target", strconv.Itoa(b.init.cmd.Process.Pid),
		"--mount", "--net", "--pid", "--ipc", "--uts", "--cgroup", "--"}
	cmd := exec.CommandContext(ctx, "nsenter", append(args, argv...)...)
	cmd.Cancel = func() error {
		if program, err := onlyChild(cmd.Process.Pid); err == nil {
			return syscall.Kill(program, syscall.SIGKILL)
		}
		return cmd.Process.Kill()
	}
	cmd.Env = append(os.Environ(), "PATH="+b.bed.bin.Bundle+":/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")
	return cmd
}

// Exec runs a program in the box and returns its standard output.
func (b *Box) Exec(ctx context.Context, argv ...string) (string, error) {
	out, err := b.Command(ctx, argv...).Output()
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			err = fmt.Errorf("%w: %s", err, strings.TrimSpace(string(exit.Stderr)))
		}
		return string(out), fmt.Errorf("run %s in %s: %w", argv[0], b.name, err)
	}
	return string(out), nil
}

// Swiftlet runs a command of Swiftlet in the box, such as check, and returns its output.
func (b *Box) Swiftlet(ctx context.Context, args ...string) (stdout, stderr string, err error) {
	program, err := b.bed.ourKubelet(ctx)
	if err != nil {
		return "", "", err
	}
	// Its name is kubelet, which is a command of its own.
	named := filepath.Join(filepath.Dir(program), "swiftlet")
	if err := os.Symlink(filepath.Base(program), named); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", "", fmt.Errorf("name program: %w", err)
	}
	cmd := b.Command(ctx, append([]string{named}, args...)...)
	var out, errOut strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &errOut
	err = cmd.Run()
	return out.String(), errOut.String(), err
}

// spawn starts a program that runs until it is stopped.
func (b *Box) spawn(program string, argv ...string) (*daemon, error) {
	cmd := b.Command(context.Background(), append([]string{"sh", "-c", joinCgroups, "sh"}, argv...)...)
	cmd.Dir = "/"
	d, err := startDaemon(b.name+" "+program, b.Log(program), cmd)
	if err != nil {
		return nil, err
	}
	d.target = func() (int, error) { return onlyChild(cmd.Process.Pid) }
	return d, nil
}

// onlyChild finds the program that nsenter runs: nsenter forks to enter the pid namespace.
func onlyChild(pid int) (int, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
	if err != nil {
		return 0, fmt.Errorf("find child of %d: %w", pid, err)
	}
	child, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return 0, fmt.Errorf("find child of %d: children are %q", pid, text)
	}
	return child, nil
}
