package bed

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
)

// join makes a program a member of the box's cgroups; entering the namespaces alone leaves
// it in the host's.
const join = `for f in /sys/fs/cgroup/*/cgroup.procs; do echo 0 > "$f" || exit; done; exec "$@"`

// enter is the command that runs argv in the box's namespaces.
func (b *Box) enter(ctx context.Context, argv ...string) *exec.Cmd {
	args := []string{"--target", strconv.Itoa(b.init.cmd.Process.Pid),
		"--mount", "--net", "--pid", "--ipc", "--uts", "--cgroup", "--"}
	cmd := exec.CommandContext(ctx, "nsenter", append(args, argv...)...)
	cmd.Env = append(os.Environ(), "PATH="+b.bed.bin.Bundle+":/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")
	return cmd
}

// Exec runs a program in the box to its end and returns its standard output.
func (b *Box) Exec(ctx context.Context, argv ...string) (string, error) {
	out, err := b.enter(ctx, argv...).Output()
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			err = fmt.Errorf("%w: %s", err, strings.TrimSpace(string(exit.Stderr)))
		}
		return string(out), fmt.Errorf("run %s in %s: %w", argv[0], b.name, err)
	}
	return string(out), nil
}

// spawn starts a program that stays.
func (b *Box) spawn(program string, argv ...string) (*daemon, error) {
	cmd := b.enter(context.Background(), append([]string{"sh", "-c", join, "sh"}, argv...)...)
	cmd.Dir = "/"
	d, err := startDaemon(b.name+" "+program, b.log(program), cmd)
	if err != nil {
		return nil, err
	}
	// nsenter forks to enter the pid namespace and waits: its only child is the program.
	d.target = func() (int, error) {
		pid := cmd.Process.Pid
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
		if err != nil {
			return 0, fmt.Errorf("find process of %s: %w", program, err)
		}
		child, err := strconv.Atoi(strings.TrimSpace(string(text)))
		if err != nil {
			return 0, fmt.Errorf("find process of %s: children are %q", program, text)
		}
		return child, nil
	}
	return d, nil
}
