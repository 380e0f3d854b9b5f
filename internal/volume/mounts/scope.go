package mounts

import (
	"fmt"
	"os/exec"

	"k8s.io/mount-utils"
)

// scopedMounter runs mount(8) in a systemd scope of its own. A daemon that a mount helper starts, such as
// that of a FUSE file system, then survives a restart of the agent's service. mount.New does the same,
// but finds out on its first mount, unsynchronized, whether systemd runs.
type scopedMounter struct{ mount.Interface }

func (m scopedMounter) Mount(source, target, fileSystem string, options []string) error {
	return m.MountSensitive(source, target, fileSystem, options, nil)
}

func (scopedMounter) MountSensitive(source, target, fileSystem string, options, sensitive []string) error {
	args, shown := mount.MakeMountArgsSensitive(source, target, fileSystem, options, sensitive)
	program, args, shown := mount.AddSystemdScopeSensitive("systemd-run", target, "mount", args, shown)
	out, err := exec.Command(program, args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("mount failed: %w\nMounting command: %s\nMounting arguments: %s\nOutput: %s", err, program, shown, out)
	}
	return nil
}

// systemdRuns reports whether systemd runs the machine. It may be installed without that, for example in a
// container, so this starts a scope.
func systemdRuns() bool {
	return exec.Command("systemd-run", "--description=Kubernetes systemd probe", "--scope", "true").Run() == nil
}
