// Package dockerbox runs a real Docker Engine for tests: Debian's docker.io, in namespaces and cgroups of its
// own. Nothing of it is visible outside or stays after Close. It needs root.
package dockerbox

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

//go:embed init.sh
var initScript []byte

// Box is one set of namespaces. Files below Dir are the same inside and outside.
type Box struct {
	Dir     string
	init    *Process
	cgroups []hierarchy
	docker  *Process
}

// Start creates the namespaces, and starts Docker in them.
func Start(ctx context.Context) (*Box, error) {
	dir, err := os.MkdirTemp("", "dockerbox") // short: it has sockets
	if err != nil {
		return nil, fmt.Errorf("start box: %w", err)
	}
	b := &Box{Dir: dir}
	if err := b.start(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("start box: %w", err), b.Close())
	}
	return b, nil
}

func (b *Box) start(ctx context.Context) error {
	var err error
	if b.cgroups, err = makeCgroups(filepath.Base(b.Dir)); err != nil {
		return err
	}
	if err := b.startInit(); err != nil {
		return err
	}
	return b.StartDocker(ctx)
}

// startInit starts PID 1 and waits until it has set up the mounts. This program is the reaper, too: see Main.
func (b *Box) startInit() error {
	script := b.Path("init.sh")
	if err := os.WriteFile(script, initScript, 0o755); err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	args := []string{script, self}
	for _, h := range b.cgroups {
		args = append(args, h.controllers+":"+h.dir)
	}
	ready, signal, err := os.Pipe()
	if err != nil {
		return err
	}
	defer ready.Close()
	cmd := exec.Command("sh", args...)
	cmd.Dir = "/"
	cmd.Env = append(os.Environ(), reaperVariable+"=1")
	cmd.ExtraFiles = []*os.File{signal}
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWNET |
		syscall.CLONE_NEWPID | syscall.CLONE_NEWIPC | syscall.CLONE_NEWUTS}
	b.init, err = startProcess(cmd, b.Path("init.log"))
	signal.Close()
	if err != nil {
		return err
	}
	if message, _ := io.ReadAll(ready); len(message) == 0 { // the script failed
		<-b.init.Done
		text, _ := os.ReadFile(b.Path("init.log"))
		return fmt.Errorf("set up box: %s", text)
	}
	return nil
}

// Path is a path below Dir.
func (b *Box) Path(name string) string { return filepath.Join(b.Dir, name) }

// NetNS is the box's network namespace.
func (b *Box) NetNS() string { return fmt.Sprintf("/proc/%d/ns/net", b.init.PID()) }

// Command returns a command that runs in the box and dies with the process that is started.
func (b *Box) Command(ctx context.Context, program string, args ...string) *exec.Cmd {
	enter := []string{"--target", strconv.Itoa(b.init.PID()), "--mount", "--net", "--pid", "--ipc", "--uts", "--cgroup", "--",
		"setpriv", "--pdeathsig", "KILL", "--", program}
	return exec.CommandContext(ctx, "nsenter", append(enter, args...)...)
}

// Start runs a program in the box until it is killed. Its output is appended to a file.
func (b *Box) Start(log, program string, args ...string) (*Process, error) {
	return startProcess(b.Command(context.Background(), program, args...), b.Path(log))
}

// Close kills everything in the box and removes its files.
func (b *Box) Close() error {
	if b.init != nil {
		b.init.Kill()
	}
	if b.docker != nil {
		<-b.docker.Done
	}
	var errs []error
	for _, h := range b.cgroups {
		errs = append(errs, removeCgroups(h.dir))
	}
	err := os.RemoveAll(b.Dir)
	for deadline := time.Now().Add(5 * time.Second); err != nil && time.Now().Before(deadline); {
		time.Sleep(20 * time.Millisecond) // the mount namespace may take a moment to end
		err = os.RemoveAll(b.Dir)
	}
	return errors.Join(append(errs, err)...)
}
