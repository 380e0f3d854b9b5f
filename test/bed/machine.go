package bed

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"swiftlet/test/images"
	"swiftlet/test/uml"
)

//go:embed machine_node.sh
var machineNode []byte

// Machine is a node with its own kernel: user-mode Linux with cgroup v2, one CPU and all
// capabilities, which root of the host may lack. The machine sees the host's files; what it writes
// is lost when it stops.
type Machine struct {
	nodeFiles
	network *uml.Network
	run     *daemon // nil until started
	stop    context.CancelFunc
}

// machineLimit bounds the start of a machine. A loaded host needs a fifth of it.
const machineLimit = 5 * time.Minute

// AddMachine creates the files of a machine and its link to the bed's bridge. It does not boot it.
func (b *Bed) AddMachine(ctx context.Context, name string) (*Machine, error) {
	b.mu.Lock()
	m := &Machine{nodeFiles: b.newNodeFiles(name)}
	b.machines = append(b.machines, m)
	b.mu.Unlock()
	if err := m.writeIdentity(); err != nil {
		return nil, fmt.Errorf("add machine: %w", err)
	}
	// Root of the machine may lower OOM scores.
	config := strings.Replace(string(containerdConfig), "restrict_oom_score_adj = true", "restrict_oom_score_adj = false", 1)
	if err := m.writeContainerdConfig([]byte(config)); err != nil {
		return nil, fmt.Errorf("add machine: %w", err)
	}
	var err error
	if m.network, err = b.slot.attachMachine(ctx, m.host); err != nil {
		return nil, fmt.Errorf("add machine: %w", err)
	}
	return m, nil
}

// Start boots the machine with containerd, the pause image and a kubelet. It does not wait until the
// node is ready; see WaitReady. It calls stopped when the machine has stopped for any reason.
func (m *Machine) Start(ctx context.Context, memoryMiB int, kubelet KubeletKind, stopped func(error)) error {
	argv, err := m.bed.kubeletCommand(ctx, kubelet)
	if err != nil {
		return err
	}
	if err := m.writeKubeletConfig(KubeletOptions{}); err != nil {
		return err
	}
	script := filepath.Join(m.dir, "node.sh")
	if err := os.WriteFile(script, machineNode, 0o600); err != nil {
		return fmt.Errorf("start machine: %w", err)
	}
	command := []string{"sh", script, m.Path("/etc"), m.bed.bin.Bundle, m.bed.images.Archives[images.Pause], m.Log("containerd")}
	command = append(append(command, argv...), m.kubeletFlags()...)
	return m.boot(uml.Machine{
		Command: command, Dir: "/", Env: os.Environ(), MemoryMiB: memoryMiB, Shared: m.bed.Logs(), Number: m.bed.slot.number, Network: m.network,
	}, stopped)
}

// boot runs the machine until it stops. Its output goes to the kubelet's log.
func (m *Machine) boot(machine uml.Machine, stopped func(error)) error {
	log, err := os.Create(m.Log("kubelet"))
	if err != nil {
		return fmt.Errorf("start machine: %w", err)
	}
	machine.Out = log
	ctx, stop := context.WithCancel(context.Background())
	m.stop = stop
	m.run = &daemon{name: "machine " + m.name, log: log.Name(), began: time.Now(), done: make(chan struct{})}
	go func() {
		code, err := uml.Run(ctx, machine)
		if err == nil {
			err = fmt.Errorf("kubelet exited with code %d", code)
		}
		m.run.err = errors.Join(fmt.Errorf("machine %s has stopped: %w", m.name, err), log.Close())
		stopped(m.run.err)
		close(m.run.done)
	}()
	return nil
}

// WaitReady returns when the kubelet has reported the node ready.
func (m *Machine) WaitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, machineLimit)
	defer cancel()
	return m.awaitReady(ctx, m.run)
}

// Close kills the machine and removes its files and its link.
func (m *Machine) Close() error {
	if m.run != nil {
		m.stop()
		<-m.run.done
	}
	return errors.Join(removeLink(m.bed.slot.nodeLink(m.host)), removeAllRetry(m.dir))
}
