package standalone

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
)

// check is one thing the machine must offer. Each error says what to do about it.
type check struct {
	name string
	run  func(Config) error
}

// checks run before anything is touched; all of them, so that a user sees every problem
// at once.
var checks = []check{
	{"root", checkRoot},
	{"manifests", checkManifests},
	{"programs", checkPrograms},
	{"kernel", checkKernel},
	{"cgroups", checkCgroups},
	{"packet filter", checkFilter},
	{"ports", checkPorts},
	{"pod addresses", checkAddresses},
}

func preflight(cfg Config) error {
	var problems []error
	for _, c := range checks {
		if err := c.run(cfg); err != nil {
			problems = append(problems, fmt.Errorf("check %s: %w", c.name, err))
		}
	}
	return errors.Join(problems...)
}

func checkRoot(Config) error {
	if os.Geteuid() != 0 {
		return errors.New("must run as root: it mounts, makes network namespaces and cgroups")
	}
	return nil
}

func checkManifests(cfg Config) error {
	info, err := os.Stat(cfg.Manifests)
	if err != nil {
		return fmt.Errorf("%w; --manifests names the directory of pods", err)
	}
	if !info.IsDir() {
		return fmt.Errorf("%s is not a directory", cfg.Manifests)
	}
	return nil
}

func checkPrograms(cfg Config) error {
	for _, name := range []string{"containerd", "containerd-shim-runc-v2", "runc", "ctr", "cni/bridge", "cni/host-local", "cni/loopback", "cni/portmap"} {
		if info, err := os.Stat(cfg.Places.program(name)); err != nil || info.Mode()&0o111 == 0 {
			return fmt.Errorf("%s is missing; `make build` puts it there, --bundle says where it is", cfg.Places.program(name))
		}
	}
	return nil
}

// checkKernel looks for what pods are made of. A module that is built in or loaded shows
// in /proc or /sys; one that is not may still be loaded by name.
func checkKernel(Config) error {
	var missing []string
	for _, m := range []struct{ name, seen string }{{"bridge", "/sys/module/bridge"}, {"veth", "/sys/module/veth"}} {
		if _, err := os.Stat(m.seen); err != nil && !builtIn(m.name) && exec.Command("modprobe", m.name).Run() != nil {
			missing = append(missing, m.name)
		}
	}
	if !hasFilesystem("overlay") {
		_ = exec.Command("modprobe", "overlay").Run()
		if !hasFilesystem("overlay") {
			missing = append(missing, "overlay")
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("the kernel lacks %s; `modprobe %s` must work", strings.Join(missing, ", "), strings.Join(missing, " "))
	}
	return nil
}

func hasFilesystem(name string) bool {
	list, err := os.ReadFile("/proc/filesystems")
	return err == nil && slices.Contains(strings.Fields(string(list)), name)
}

// builtIn asks the kernel's own list, which containers and odd kernels may lack; then the
// kernel is believed to have it, and the first pod's event will tell.
func builtIn(module string) bool {
	release, err := os.ReadFile("/proc/sys/kernel/osrelease")
	if err != nil {
		return true
	}
	list, err := os.ReadFile("/lib/modules/" + strings.TrimSpace(string(release)) + "/modules.builtin")
	return err != nil || strings.Contains(string(list), "/"+module+".ko")
}

func checkCgroups(cfg Config) error {
	roots, err := cgroupRoots()
	if err != nil {
		return err
	}
	if len(roots) == 0 {
		return errors.New("no cgroup filesystem is mounted on /sys/fs/cgroup")
	}
	if cfg.SystemdCgroups {
		if _, err := os.Stat("/run/systemd/system"); err != nil {
			return errors.New("--cgroup-driver=systemd needs systemd as the machine's init")
		}
	}
	return nil
}

func checkFilter(Config) error {
	_, err := filterBackend(exec.LookPath)
	return err
}

// checkPorts finds a kubelet, or another program, on the agent's ports before the agent
// would fail on them halfway up.
func checkPorts(cfg Config) error {
	for flag, port := range map[string]int{"--port": cfg.Port, "--healthz-port": cfg.HealthzPort} {
		if port == 0 {
			continue
		}
		l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err != nil {
			return fmt.Errorf("port %d is taken (%w); is another kubelet running? choose one with %s", port, err, flag)
		}
		l.Close()
	}
	return nil
}

// checkAddresses refuses a pod network that overlaps one the machine is already on.
func checkAddresses(cfg Config) error {
	links, err := net.Interfaces()
	if err != nil {
		return fmt.Errorf("list interfaces: %w", err)
	}
	for _, link := range links {
		if link.Name == bridgeName {
			continue
		}
		addresses, err := link.Addrs()
		if err != nil {
			return fmt.Errorf("list addresses of %s: %w", link.Name, err)
		}
		for _, a := range addresses {
			network, err := netip.ParsePrefix(a.String())
			if err == nil && network.Overlaps(cfg.PodCIDR) {
				return fmt.Errorf("the pod network %s overlaps %s of interface %s; choose another with --pod-cidr", cfg.PodCIDR, network, link.Name)
			}
		}
	}
	return nil
}
