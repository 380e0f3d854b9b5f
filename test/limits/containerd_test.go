package limits

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"swiftlet/internal/cgroup"
	"swiftlet/test/images"
)

//go:embed containerd.toml
var containerdConfig string

// nodeDir holds all files of a node. It is on a tmpfs on both machines.
const nodeDir = "/run/limits"

// The cgroups of a test node besides those of pods.
const (
	agentsCgroup = "/agents" // kubelet and runtime
	systemCgroup = "/system"
	kubeCgroup   = "/kube"
)

// hierarchy is the machine's cgroup hierarchy.
var hierarchy cgroup.Hierarchy

func TestMain(m *testing.M) {
	if os.Getenv(envMachine) == "" {
		os.Exit(m.Run())
	}
	code, err := runWithContainerd(m.Run)
	if err != nil {
		fmt.Fprintln(os.Stderr, "limits:", err)
		code = 1
	}
	os.Exit(code)
}

// runWithContainerd starts containerd on the machine and runs the tests.
func runWithContainerd(run func() int) (code int, err error) {
	if hierarchy, err = cgroup.Detect(); err != nil {
		return 0, err
	}
	for _, dir := range []string{"/var/lib", "/var/log"} { // in a box these are the host's
		if err := unix.Mount("tmpfs", dir, "tmpfs", 0, ""); err != nil {
			return 0, fmt.Errorf("mount tmpfs on %s: %w", dir, err)
		}
	}
	for _, group := range []string{agentsCgroup, systemCgroup, kubeCgroup} {
		if err := makeCgroup(group); err != nil {
			return 0, err
		}
	}
	if err := addNetwork(); err != nil {
		return 0, err
	}
	bundle := os.Getenv(envBundle)
	os.Setenv("PATH", bundle+":"+os.Getenv("PATH"))
	if err := os.MkdirAll(nodeDir, 0o755); err != nil {
		return 0, err
	}
	config := strings.Replace(containerdConfig, "@RESTRICT@", fmt.Sprint(!mayLowerOOMScore()), 1)
	if err := os.WriteFile(nodeDir+"/containerd.toml", []byte(config), 0o600); err != nil {
		return 0, err
	}
	runtime, err := start("containerd", filepath.Join(bundle, "containerd"), "--config", nodeDir+"/containerd.toml")
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, runtime.stop()) }()
	if err := importImages(runtime); err != nil {
		return 0, err
	}
	return run(), nil
}

func importImages(runtime *program) error {
	socket := nodeDir + "/containerd.sock"
	err := runtime.await(func() error {
		conn, err := net.Dial("unix", socket)
		if err == nil {
			conn.Close()
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("%w\n%s", err, runtime.logTail())
	}
	set, err := images.Build(context.Background(), os.Getenv("SWIFTLET_CACHE"))
	if err != nil {
		return err
	}
	for _, archive := range set.Archives {
		out, err := exec.Command("ctr", "--address", socket, "--namespace", "k8s.io", "images", "import", archive).CombinedOutput()
		if err != nil {
			return fmt.Errorf("import %s: %w\n%s\n%s", archive, err, out, runtime.logTail())
		}
	}
	return nil
}

// addNetwork gives the node an address, which pods with hostNetwork need.
func addNetwork() error {
	if os.Getenv(envNode) != "" {
		return nil // it already has one, to reach the API server
	}
	for _, args := range []string{
		"link add eth0 type bridge", "addr add 10.99.0.1/24 dev eth0", "link set eth0 up", "route add default via 10.99.0.2",
	} {
		if out, err := exec.Command("ip", strings.Fields(args)...).CombinedOutput(); err != nil {
			return fmt.Errorf("ip %s: %w: %s", args, err, out)
		}
	}
	return nil
}

// makeCgroup creates a cgroup with all controllers in every hierarchy.
func makeCgroup(group string) error {
	for controller, mount := range hierarchy.Mounts {
		if hierarchy.Version == 2 {
			if err := os.WriteFile(mount+"/cgroup.subtree_control", []byte("+cpu +io +memory +pids"), 0); err != nil {
				return err
			}
		}
		if err := os.Mkdir(mount+group, 0o755); err != nil && !os.IsExist(err) {
			return err
		}
		if hierarchy.Version == 1 && controller == "cpuset" { // a new v1 cpuset is empty
			for _, file := range []string{"/cpuset.cpus", "/cpuset.mems"} {
				value, err := os.ReadFile(mount + file)
				if err == nil {
					err = os.WriteFile(mount+group+file, value, 0)
				}
				if err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// mayLowerOOMScore reports whether this process may set an OOM score below its own.
func mayLowerOOMScore() bool {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	return unix.Capget(&header, &data[0]) == nil && data[0].Effective&(1<<unix.CAP_SYS_RESOURCE) != 0
}

// program is a daemon in agentsCgroup.
type program struct {
	cmd  *exec.Cmd
	log  string
	done chan struct{}
}

func start(name string, argv ...string) (*program, error) {
	p := &program{log: filepath.Join(nodeDir, name+".log"), done: make(chan struct{})}
	log, err := os.OpenFile(p.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	// A shell joins the cgroups and execs the program.
	join := "set -e; "
	for _, mount := range hierarchy.Mounts {
		join += fmt.Sprintf("echo 0 > %s%s/cgroup.procs; ", mount, agentsCgroup)
	}
	p.cmd = exec.Command("sh", append([]string{"-c", join + `exec "$@"`, "sh"}, argv...)...)
	p.cmd.Stdout, p.cmd.Stderr = log, log
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	go func() { _ = p.cmd.Wait(); close(p.done) }() // stop waits for it
	return p, nil
}

// stop sends SIGTERM and, after 20 s, SIGKILL.
func (p *program) stop() error {
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	select {
	case <-p.done:
		return nil
	case <-time.After(20 * time.Second):
		_ = p.cmd.Process.Kill()
		<-p.done
		return fmt.Errorf("stop %s: killed after 20 s", p.log)
	}
}

// await polls check until it passes or the program has exited.
func (p *program) await(check func() error) error {
	tick := time.NewTicker(300 * time.Millisecond) // the machine is slow, and each check costs CPU
	defer tick.Stop()
	late := time.After(3 * time.Minute)
	for {
		err := check()
		if err == nil {
			return nil
		}
		select {
		case <-tick.C:
		case <-p.done:
			return fmt.Errorf("program has exited: %w", err)
		case <-late:
			return err
		}
	}
}

// logTail returns the end of the program's log.
func (p *program) logTail() string {
	text, _ := os.ReadFile(p.log)
	return string(text[max(0, len(text)-8<<10):])
}
