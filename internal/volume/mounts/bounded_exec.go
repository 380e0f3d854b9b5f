package mounts

import (
	"context"
	"errors"
	"os/exec"
	"strings"
	"time"

	utilexec "k8s.io/utils/exec"

	"swiftlet/internal/program"
)

// Deadlines of the node's programs. fsck, mkfs and the programs that grow a file system may take long on a large
// disk, and must not be interrupted early; meanwhile an event of the pod says that its volume is not mounted.
const (
	queryTimeout  = 2 * time.Minute
	repairTimeout = 2 * time.Hour
)

func timeoutOf(name string) time.Duration {
	for _, slow := range []string{"fsck", "mkfs.", "resize2fs", "xfs_growfs", "btrfs"} {
		if strings.HasPrefix(name, slow) {
			return repairTimeout
		}
	}
	return queryTimeout
}

// boundedExec runs the programs of mount-utils with a deadline.
type boundedExec struct{ utilexec.Interface }

func (boundedExec) Command(name string, args ...string) utilexec.Cmd {
	return boundedCmd{Cmd: utilexec.New().Command(name, args...), name: name, args: args}
}

// boundedCmd is a command of which only the combined output is used.
type boundedCmd struct {
	utilexec.Cmd
	name string
	args []string
}

func (c boundedCmd) CombinedOutput() ([]byte, error) {
	out, err := program.Run(context.Background(), timeoutOf(c.name), c.name, c.args...)
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		err = &utilexec.ExitErrorWrapper{ExitError: exit}
	case errors.Is(err, exec.ErrNotFound):
		err = utilexec.ErrExecutableNotFound
	}
	return out, err
}
