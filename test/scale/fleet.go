package scale

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"swiftlet/bench"
	"swiftlet/test/pdeathsig"
)

// The kinds of nodes.
const (
	Together = "one process" // our agents in one process
	Separate = "processes"   // our agents in a process each
	Kubemark = "kubemark"    // upstream's hollow nodes in a process each
)

// Programs are the paths of the programs that run nodes.
type Programs struct {
	Hollow   string
	Kubemark string
}

// fleet is the processes of all nodes.
type fleet struct {
	processes []*process
}

// process is a program that runs one node or many.
type process struct {
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	exited <-chan error
	log    string
}

// startFleet starts the nodes of a kind. It does not wait until they are ready.
func (c *cluster) startFleet(ctx context.Context, programs Programs, kind string, nodes int) (*fleet, error) {
	if err := c.writeNodes(nodes); err != nil {
		return nil, err
	}
	f := &fleet{}
	for _, cmd := range c.commands(programs, kind, nodes) {
		p, err := startProcess(cmd, filepath.Join(c.bed.Logs(), fmt.Sprintf("nodes-%d.log", len(f.processes))))
		if err != nil {
			return nil, errors.Join(err, f.stop())
		}
		f.processes = append(f.processes, p)
		if err := pause(ctx, startPause); err != nil {
			return nil, errors.Join(err, f.stop())
		}
	}
	return f, nil
}

// startPause is the time between the starts of two nodes.
const startPause = 20 * time.Millisecond

// commands are those that run the nodes.
func (c *cluster) commands(programs Programs, kind string, nodes int) []*exec.Cmd {
	var names []string
	for i := range nodes {
		names = append(names, nodeName(i))
	}
	if kind == Together {
		return []*exec.Cmd{exec.Command(programs.Hollow, "-dir", c.dir, "-pause", startPause.String(), "-nodes", strings.Join(names, ","))}
	}
	var all []*exec.Cmd
	for i, name := range names {
		if kind == Separate {
			// kubemark sends no events, so those of ours would spoil the comparison.
			all = append(all, exec.Command(programs.Hollow, "-dir", c.dir, "-nodes", name, "-events=false"))
			continue
		}
		cmd := exec.Command(programs.Kubemark, "--morph=kubelet", "--name="+name, "--kubeconfig="+c.files(i).Kubeconfig(),
			"--kubelet-port="+strconv.Itoa(kubemarkPort+i), "--kubelet-read-only-port=0", "--use-host-image-service=false",
			"--kube-api-qps=50", "--kube-api-burst=100") // the kubelet's defaults
		cmd.Env = append(os.Environ(), "TMPDIR="+string(c.files(i))) // of its root directory
		all = append(all, cmd)
	}
	return all
}

// kubemarkPort is the port of the first hollow node of kubemark, which cannot listen on the loopback
// interface only.
const kubemarkPort = 21000

func startProcess(cmd *exec.Cmd, log string) (*process, error) {
	file, err := os.Create(log)
	if err != nil {
		return nil, fmt.Errorf("start nodes: %w", err)
	}
	defer file.Close()
	cmd.Stdout, cmd.Stderr = file, file
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Ctrl-C goes to this process only
	p := &process{cmd: cmd, log: log}
	if p.stdin, err = cmd.StdinPipe(); err != nil {
		return nil, fmt.Errorf("start nodes: %w", err)
	}
	if p.exited, err = pdeathsig.Start(cmd); err != nil {
		return nil, fmt.Errorf("start nodes: %w", err)
	}
	return p, nil
}

// stop kills all processes.
func (f *fleet) stop() error {
	var errs []error
	for _, p := range f.processes {
		if err := p.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
			errs = append(errs, fmt.Errorf("stop nodes: %w", err))
		}
	}
	for _, p := range f.processes {
		<-p.exited
	}
	return errors.Join(errs...)
}

// check returns an error if a process has exited.
func (f *fleet) check() error {
	for _, p := range f.processes {
		select {
		case err := <-p.exited:
			return fmt.Errorf("nodes exited: %v: %s", err, lastLines(p.log, 5))
		default:
		}
	}
	return nil
}

// restart restarts all agents of our processes.
func (f *fleet) restart() error {
	for _, p := range f.processes {
		if _, err := io.WriteString(p.stdin, "restart\n"); err != nil {
			return fmt.Errorf("restart agents: %w", err)
		}
	}
	return nil
}

func (f *fleet) pids() []int {
	var all []int
	for _, p := range f.processes {
		all = append(all, p.cmd.Process.Pid)
	}
	return all
}

// cpu is the CPU time that all processes have used.
func (f *fleet) cpu() (time.Duration, error) {
	var sum time.Duration
	for _, pid := range f.pids() {
		used, err := bench.ProcessCPU(pid)
		if err != nil {
			return 0, err
		}
		sum += used
	}
	return sum, nil
}

func lastLines(path string, n int) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}

// failure returns an error if a process has exited, for a run that has failed.
func (f *fleet) failure() error {
	if f == nil {
		return nil
	}
	return f.check()
}
