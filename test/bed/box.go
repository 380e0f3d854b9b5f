package bed

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

//go:embed box_init.sh
var boxInit []byte

// Box is a node in its own namespaces on the host's kernel. It has its own cgroups and its own
// /var/lib/kubelet, /run, /etc/cni and so on.
type Box struct {
	nodeFiles
	cgroups []hierarchy

	init            *daemon // PID 1 of the box: when it exits, the kernel kills all others
	containerd      *daemon
	kubelet         *daemon
	runtimeHandlers []byte     // further runtime handlers, in the format of containerd's configuration
	calls           *recording // nil when the kubelet's calls are not recorded
}

// Inside returns a host path to a file as the node sees it. It also works for files that Path
// cannot reach, such as sockets below /run.
func (b *Box) Inside(path string) string {
	return filepath.Join(fmt.Sprintf("/proc/%d/root", b.init.cmd.Process.Pid), path)
}

// start creates namespaces, cgroups and network. It starts no programs.
func (b *Box) start(ctx context.Context) error {
	if err := os.MkdirAll(b.dir, 0o755); err != nil {
		return fmt.Errorf("start box: %w", err)
	}
	var err error
	if b.cgroups, err = makeCgroups(b.bed.slot.cgroupName(b.name)); err != nil {
		return fmt.Errorf("start box: %w", err)
	}
	if err := b.startInit(); err != nil {
		return fmt.Errorf("start box: %w", err)
	}
	return b.startNetwork(ctx)
}

// startInit starts PID 1 and waits until it has set up the mounts.
func (b *Box) startInit() error {
	script := filepath.Join(b.dir, "init.sh")
	if err := os.WriteFile(script, boxInit, 0o755); err != nil {
		return err
	}
	ready, signal, err := os.Pipe()
	if err != nil {
		return err
	}
	defer ready.Close()
	args := []string{script, b.name, b.dir, b.bed.images.PauseBin, filepath.Join(b.bed.bin.Bundle, "cni")}
	for _, h := range b.cgroups {
		args = append(args, h.controllers+":"+h.dir)
	}
	cmd := exec.Command("sh", args...)
	cmd.Dir = "/"
	cmd.ExtraFiles = []*os.File{signal}
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWNET |
		syscall.CLONE_NEWPID | syscall.CLONE_NEWIPC | syscall.CLONE_NEWUTS}
	b.init, err = startDaemon(b.name, b.Log("init"), cmd)
	signal.Close()
	if err != nil {
		return err
	}
	// The script failed if it closed the pipe without writing to it.
	if message, _ := io.ReadAll(ready); len(message) == 0 {
		<-b.init.done
		return fmt.Errorf("set up box: %w\n%s", b.init.err, tail(b.init.log, 10))
	}
	return nil
}

func (b *Box) startNetwork(ctx context.Context) error {
	s := b.bed.slot
	if err := s.attach(ctx, b.init.cmd.Process.Pid, b.host); err != nil {
		return err
	}
	commands := [][]string{
		{"ip", "link", "set", "lo", "up"},
		{"ip", "addr", "add", b.Address() + "/24", "dev", "eth0"},
		{"ip", "link", "set", "eth0", "up"},
		{"ip", "route", "add", "default", "via", s.gateway()},
	}
	for _, command := range commands {
		if _, err := b.Exec(ctx, command...); err != nil {
			return fmt.Errorf("start network of %s: %w", b.name, err)
		}
	}
	return nil
}

// Close kills the box with its kubelet and runtime. The kernel removes their mounts and
// interfaces with the namespaces.
func (b *Box) Close() error {
	b.bed.stopPodRoutes(b)
	var errs []error
	if b.init != nil {
		errs = append(errs, b.init.kill())
		for _, d := range []*daemon{b.kubelet, b.containerd} {
			if d != nil {
				<-d.done
			}
		}
	}
	errs = append(errs, b.record(""))
	for _, h := range b.cgroups {
		errs = append(errs, removeCgroups(h.dir))
	}
	b.cgroups = nil
	errs = append(errs, removeLink(b.bed.slot.nodeLink(b.host)))
	errs = append(errs, removeAllRetry(b.dir))
	return errors.Join(errs...)
}

// removeAllRetry removes a directory. It retries, as an exiting mount namespace may still use it.
func removeAllRetry(dir string) error {
	err := os.RemoveAll(dir)
	for deadline := time.Now().Add(5 * time.Second); err != nil && time.Now().Before(deadline); {
		time.Sleep(20 * time.Millisecond)
		err = os.RemoveAll(dir)
	}
	if err != nil {
		return fmt.Errorf("remove files: %w", err)
	}
	return nil
}
