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

// Box is a node in namespaces of its own, on this machine's kernel. The usual paths of a
// node (/var/lib/kubelet, /run, /etc/cni, …) are its own, and so are its cgroups.
type Box struct {
	name    string
	host    int // its number on the bed's wire
	dir     string
	bed     *Bed
	cgroups []hierarchy

	init       *daemon // the box's first process: all others die with it
	containerd *daemon
	kubelet    *daemon
	handlers   []byte     // runtimes beside the usual one, as containerd's configuration has them
	calls      *recording // nil when the kubelet's calls are not recorded
}

func (b *Box) Name() string    { return b.name }
func (b *Box) Address() string { return b.bed.site.nodeAddress(b.host) }
func (b *Box) PodCIDR() string { return b.bed.site.podCIDR(b.host) }

func (b *Box) Path(path string) string { return filepath.Join(b.dir, "fs", path) }

// Inside leads to a path as the node itself sees it, also where it is not kept in a
// directory of this machine: sockets below /run.
func (b *Box) Inside(path string) string {
	return filepath.Join(fmt.Sprintf("/proc/%d/root", b.init.cmd.Process.Pid), path)
}

// start brings the box up as far as its network; nothing runs in it yet.
func (b *Box) start(ctx context.Context) error {
	if err := os.MkdirAll(b.dir, 0o755); err != nil {
		return fmt.Errorf("start box: %w", err)
	}
	var err error
	if b.cgroups, err = makeCgroups(b.bed.site.cgroupName(b.name)); err != nil {
		return fmt.Errorf("start box: %w", err)
	}
	if err := b.startInit(); err != nil {
		return fmt.Errorf("start box: %w", err)
	}
	return b.startNetwork(ctx)
}

// startInit starts the first process and waits until it has arranged the box.
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
	// End of file without a word means that the script failed.
	if said, _ := io.ReadAll(ready); len(said) == 0 {
		<-b.init.done
		return fmt.Errorf("arrange the box: %w\n%s", b.init.err, tail(b.init.log, 10))
	}
	return nil
}

func (b *Box) startNetwork(ctx context.Context) error {
	s := b.bed.site
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

// Log names the file that a program of the box logs to.
func (b *Box) Log(program string) string {
	return filepath.Join(b.bed.site.logDir(), b.name+"."+program+".log")
}

// Close ends the box. The kubelet and the runtime are killed with it: the kernel takes
// their mounts and interfaces down with the namespaces.
func (b *Box) Close() error {
	b.bed.unwire(b)
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
	errs = append(errs, removeLink(fmt.Sprintf("%s-%d", b.bed.site.bridge(), b.host)))
	errs = append(errs, removeAllSoon(b.dir))
	return errors.Join(errs...)
}

// removeAllSoon deletes a directory that a dying mount namespace may hold for a moment.
func removeAllSoon(dir string) error {
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
