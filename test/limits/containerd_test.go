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

// home holds everything of a node. It is in memory on both machines.
const home = "/run/limits"

// The groups that a test's node has besides those of pods.
const (
	agentsGroup = "/agents" // kubelet and runtime
	systemGroup = "/system"
	kubeGroup   = "/kube"
)

// hierarchy is the machine's.
var hierarchy cgroup.Hierarchy

func TestMain(m *testing.M) {
	if os.Getenv(envMachine) == "" {
		os.Exit(m.Run())
	}
	code, err := withRuntime(m.Run)
	if err != nil {
		fmt.Fprintln(os.Stderr, "limits:", err)
		code = 1
	}
	os.Exit(code)
}

// withRuntime runs the tests on the machine, upon a containerd.
func withRuntime(run func() int) (code int, err error) {
	if hierarchy, err = cgroup.Detect(); err != nil {
		return 0, err
	}
	for _, dir := range []string{"/var/lib", "/var/log"} { // of a box these are the host's
		if err := unix.Mount("tmpfs", dir, "tmpfs", 0, ""); err != nil {
			return 0, fmt.Errorf("cover %s: %w", dir, err)
		}
	}
	for _, group := range []string{agentsGroup, systemGroup, kubeGroup} {
		if err := makeGroup(group); err != nil {
			return 0, err
		}
	}
	if err := addNetwork(); err != nil {
		return 0, err
	}
	bundle := os.Getenv(envBundle)
	os.Setenv("PATH", bundle+":"+os.Getenv("PATH"))
	if err := os.MkdirAll(home, 0o755); err != nil {
		return 0, err
	}
	config := strings.Replace(containerdConfig, "@RESTRICT@", fmt.Sprint(!mayLowerScores()), 1)
	if err := os.WriteFile(home+"/containerd.toml", []byte(config), 0o600); err != nil {
		return 0, err
	}
	runtime, err := start("containerd", filepath.Join(bundle, "containerd"), "--config", home+"/containerd.toml")
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
	socket := home + "/containerd.sock"
	err := runtime.await(func() error {
		conn, err := net.Dial("unix", socket)
		if err == nil {
			conn.Close()
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("%w\n%s", err, runtime.said())
	}
	set, err := images.Build(context.Background(), os.Getenv("SWIFTLET_CACHE"))
	if err != nil {
		return err
	}
	for _, archive := range set.Archives {
		out, err := exec.Command("ctr", "--address", socket, "--namespace", "k8s.io", "images", "import", archive).CombinedOutput()
		if err != nil {
			return fmt.Errorf("import %s: %w\n%s\n%s", archive, err, out, runtime.said())
		}
	}
	return nil
}

// addNetwork gives the node an address, which it needs for pods on its own network.
func addNetwork() error {
	if os.Getenv(envNode) != "" {
		return nil // it has one already, by which it reaches the API server
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

// makeGroup makes a group with all controllers in every tree.
func makeGroup(group string) error {
	for controller, mount := range hierarchy.Mounts {
		if hierarchy.Version == 2 {
			if err := os.WriteFile(mount+"/cgroup.subtree_control", []byte("+cpu +io +memory +pids"), 0); err != nil {
				return err
			}
		}
		if err := os.Mkdir(mount+group, 0o755); err != nil && !os.IsExist(err) {
			return err
		}
		if hierarchy.Version == 1 && controller == "cpuset" { // it is empty until filled
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

// mayLowerScores reports whether this process may lower a process's OOM score below its own.
func mayLowerScores() bool {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	return unix.Capget(&header, &data[0]) == nil && data[0].Effective&(1<<unix.CAP_SYS_RESOURCE) != 0
}

// program is one that runs in the group of agents until it is stopped.
type program struct {
	cmd  *exec.Cmd
	log  string
	done chan struct{}
}

func start(name string, argv ...string) (*program, error) {
	p := &program{log: filepath.Join(home, name+".log"), done: make(chan struct{})}
	log, err := os.OpenFile(p.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	// A shell joins the groups, and becomes the program.
	join := "set -e; "
	for _, mount := range hierarchy.Mounts {
		join += fmt.Sprintf("echo 0 > %s%s/cgroup.procs; ", mount, agentsGroup)
	}
	p.cmd = exec.Command("sh", append([]string{"-c", join + `exec "$@"`, "sh"}, argv...)...)
	p.cmd.Stdout, p.cmd.Stderr = log, log
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	go func() { _ = p.cmd.Wait(); close(p.done) }() // ends with stop, which waits
	return p, nil
}

// stop asks it to end, then makes it.
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
		return fmt.Errorf("%s did not end when asked", p.log)
	}
}

// await repeats a check until it passes or the program has ended.
func (p *program) await(check func() error) error {
	tick := time.NewTicker(300 * time.Millisecond) // the machine is slow, and asking costs it
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
			return fmt.Errorf("the program has ended: %w", err)
		case <-late:
			return err
		}
	}
}

// said is the end of the program's log.
func (p *program) said() string {
	text, _ := os.ReadFile(p.log)
	return string(text[max(0, len(text)-8<<10):])
}
