package mounts

import (
	"context"
	"fmt"
	"strings"
	"time"

	"k8s.io/mount-utils"

	"swiftlet/internal/clip"
	"swiftlet/internal/program"
)

// mountTimeout bounds one run of mount(8). mount.nfs gives up after two minutes by itself.
const mountTimeout = 5 * time.Minute

// toolMounter runs mount(8) with a deadline, which the one of the library does not have. With scope, it does so
// in a systemd scope of its own: a daemon that a mount helper starts, such as that of a FUSE file system, then
// survives a restart of the agent's service. mount.New does the same, but finds out on its first mount,
// unsynchronized, whether systemd runs.
type toolMounter struct {
	mount.Interface
	scope bool
}

func (m toolMounter) Mount(source, target, fileSystem string, options []string) error {
	return m.MountSensitive(source, target, fileSystem, options, nil)
}

// MountSensitive mounts; a bind mount with options needs a remount to get them.
func (m toolMounter) MountSensitive(source, target, fileSystem string, options, sensitive []string) error {
	bind, first, remount, remountSensitive := mount.MakeBindOptsSensitive(options, sensitive)
	if m.scope || !bind {
		return m.run(source, target, fileSystem, options, sensitive)
	}
	if err := m.run(source, target, fileSystem, first, remountSensitive); err != nil {
		return err
	}
	return m.run(source, target, fileSystem, remount, remountSensitive)
}

// run rejects what mount(8) would take for an option: pods choose the sources of network file systems.
func (m toolMounter) run(source, target, fileSystem string, options, sensitive []string) error {
	for _, operand := range []string{source, target} {
		if strings.HasPrefix(operand, "-") {
			return fmt.Errorf("mount failed: %q begins with a dash", clip.Text(operand, clip.Name))
		}
	}
	name := "mount"
	args, shown := mount.MakeMountArgsSensitive(source, target, fileSystem, options, sensitive)
	if m.scope {
		name, args, shown = mount.AddSystemdScopeSensitive("systemd-run", target, name, args, shown)
	}
	out, err := program.Run(context.Background(), mountTimeout, name, args...)
	if err != nil {
		return fmt.Errorf("mount failed: %w\nMounting command: %s\nMounting arguments: %s\nOutput: %s", err, name, shown, clip.Text(out, clip.Message))
	}
	return nil
}

// systemdRuns reports whether systemd runs the machine. It may be installed without that, for example in a
// container, so this starts a scope.
func systemdRuns() bool {
	_, err := program.Run(context.Background(), 30*time.Second, "systemd-run", "--description=Kubernetes systemd probe", "--scope", "true")
	return err == nil
}
