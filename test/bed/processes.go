package bed

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// KubeletPID is the process ID of the running kubelet, on the host.
func (b *Box) KubeletPID() (int, error) { return b.kubelet.pid("kubelet") }

// ContainerdPID is the process ID of the running containerd, on the host.
func (b *Box) ContainerdPID() (int, error) { return b.containerd.pid("containerd") }

// APIServerPID is the process ID of the running API server.
func (c *ControlPlane) APIServerPID() (int, error) { return c.server.pid("API server") }

// EtcdPID is the process ID of the running etcd.
func (c *ControlPlane) EtcdPID() (int, error) { return c.etcd.pid("etcd") }

func (d *daemon) pid(name string) (int, error) {
	if !d.running() {
		return 0, fmt.Errorf("find process of %s: not running", name)
	}
	return d.target()
}

// awaitStopped returns when all threads of a process are stopped. On a busy machine they run for a while after
// SIGSTOP, until the thread that gets the signal is scheduled.
func awaitStopped(pid int) error {
	for deadline := time.Now().Add(startLimit); ; time.Sleep(time.Millisecond) {
		running, err := runningThreads(pid)
		if err != nil {
			return err
		}
		if len(running) == 0 {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("threads do not stop: %v", running)
		}
	}
}

// runningThreads lists the threads of a process that are not stopped.
func runningThreads(pid int) (running []string, err error) {
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
			continue // it has ended
		}
		if err != nil {
			return nil, err
		}
		// The state follows the name, which is in parentheses and may have any characters.
		fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
		if len(fields) == 0 || fields[0] != "T" {
			running = append(running, filepath.Base(filepath.Dir(file)))
		}
	}
	return running, nil
}

// RuntimeSocket is the host path of containerd's socket.
func (b *Box) RuntimeSocket() string { return b.Inside(containerdSocket) }

// CPU is the time that all processes of the box have used, those that have exited included.
func (b *Box) CPU() (time.Duration, error) {
	for _, h := range b.cgroups {
		if !slices.Contains(strings.Split(h.controllers, ","), "cpuacct") {
			continue
		}
		text, err := readFile(filepath.Join(h.dir, "cpuacct.usage"))
		if err != nil {
			return 0, err
		}
		used, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
		if err != nil {
			return 0, fmt.Errorf("read CPU of %s: %w", b.name, err)
		}
		return time.Duration(used), nil
	}
	return 0, fmt.Errorf("read CPU of %s: the host has no cpuacct hierarchy", b.name)
}

// Gateway is the host's address on the bed's network. Nodes and pods can connect to it.
func (b *Bed) Gateway() string { return b.slot.gateway() }

// BundleDir is the directory of containerd and runc.
func (b *Bed) BundleDir() string { return b.bin.Bundle }

// UseKubelet makes nodes of kind Ours run a copy of this program instead of one that is built from
// the checkout. It is called before the first StartKubelet.
func (b *Bed) UseKubelet(program string) error {
	from, err := os.Open(program)
	if err != nil {
		return fmt.Errorf("use kubelet: %w", err)
	}
	defer from.Close()
	b.mu.Lock()
	defer b.mu.Unlock()
	b.kubeletPath = filepath.Join(b.slot.dir, "kubelet")
	to, err := os.OpenFile(b.kubeletPath, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o755)
	if err != nil {
		return fmt.Errorf("use kubelet: %w", err)
	}
	if _, err := io.Copy(to, from); err != nil {
		to.Close()
		return fmt.Errorf("use kubelet: %w", err)
	}
	return to.Close()
}

// nodeAuditPolicy adds every request of a node to those of auditPolicy.
const nodeAuditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Metadata
  userGroups: [system:nodes]
- level: None
`

// AuditNodes restarts the API server so that its audit log has every request of a node. Logging
// costs time, so it is off by default.
func (c *ControlPlane) AuditNodes(ctx context.Context) error {
	if err := os.WriteFile(c.auditPolicyFile(), []byte(nodeAuditPolicy), 0o600); err != nil {
		return fmt.Errorf("write audit policy: %w", err)
	}
	if err := c.StopAPIServer(); err != nil {
		return err
	}
	return c.StartAPIServer(ctx)
}
