package standalone

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"k8s.io/utils/clock"
)

// check tests one requirement. Its error says what to do.
type check struct {
	name string
	run  func(Config) error
}

// checks all run before anything is changed, so that the user sees every problem at once.
func checks(clock clock.Clock) []check {
	return []check{
		{"root", checkRoot},
		{"directories", checkDirectories},
		{"manifests", checkManifests},
		{"programs", checkPrograms},
		{"bundle", checkBundle},
		{"kernel", checkKernel},
		{"cgroups", checkCgroups},
		{"packet filter", checkFilter},
		{"ports", func(cfg Config) error { return checkPorts(cfg, clock) }},
		{"pod addresses", checkAddresses},
	}
}

func preflight(cfg Config, clock clock.Clock) error {
	var problems []error
	for _, c := range checks(clock) {
		if err := c.run(cfg); err != nil {
			problems = append(problems, fmt.Errorf("check %s: %w", c.name, err))
		}
	}
	return errors.Join(problems...)
}

func checkRoot(Config) error {
	if os.Geteuid() != 0 {
		return errors.New("must run as root to mount and to create network namespaces and cgroups")
	}
	return nil
}

func checkDirectories(cfg Config) error {
	return errors.Join(checkOwner(cfg.Paths.root), checkOwner(cfg.Paths.run))
}

// checkOwner returns an error if others than this user may change what is in the directory, unless it does not
// exist: they could have files overwritten, and programs run, as root.
func checkOwner(dir string) error {
	info, err := os.Stat(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if sys, ok := info.Sys().(*syscall.Stat_t); ok && int(sys.Uid) != os.Geteuid() || info.Mode().Perm()&0o022 != 0 {
		return fmt.Errorf("%s must belong to root, and no one else may write to it; it has the owner %d and the mode %v", dir, sys.Uid, info.Mode())
	}
	return nil
}

func checkManifests(cfg Config) error {
	info, err := os.Stat(cfg.Manifests)
	if err != nil {
		return fmt.Errorf("%w; set the directory of pods with --manifests", err)
	}
	if !info.IsDir() {
		return fmt.Errorf("%s is not a directory", cfg.Manifests)
	}
	return nil
}

func checkPrograms(cfg Config) error {
	for _, f := range bundledFiles(cfg) {
		if info, err := os.Stat(f.path); err == nil && info.Mode()&0o111 != 0 {
			continue
		}
		if strings.HasPrefix(f.name, "api/") {
			return fmt.Errorf("%s is missing; run `make api`, or set its directory with --api-bundle", f.path)
		}
		return fmt.Errorf("%s is missing; run `make build`, or set its directory with --bundle", f.path)
	}
	return nil
}

// checkKernel checks for bridge, veth and overlay. Modules that are built in or loaded are
// listed in /proc or /sys; others are loaded with modprobe.
func checkKernel(Config) error {
	var missing []string
	for _, m := range []struct{ name, seen string }{{"bridge", "/sys/module/bridge"}, {"veth", "/sys/module/veth"}} {
		if _, err := os.Stat(m.seen); err != nil && !builtIn(m.name) && runHostProgram(context.Background(), "modprobe", m.name) != nil {
			missing = append(missing, m.name)
		}
	}
	if !hasFilesystem("overlay") {
		_ = runHostProgram(context.Background(), "modprobe", "overlay")
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

// builtIn reads the kernel's list of built-in modules. Containers and custom kernels may lack
// the list; then the module is assumed to exist, and if it does not, the first pod fails with
// an event.
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
			return errors.New("--cgroup-driver=systemd needs systemd as the host's init")
		}
	}
	return nil
}

func checkFilter(Config) error {
	_, err := filterBackend(exec.LookPath)
	return err
}

// portPatience is how long a port may be taken: the API server of a node that was killed a moment ago ends after it.
const portPatience = 3 * time.Second

// checkPorts checks that no kubelet or other program listens on the ports of the agent and the API server:
// otherwise they would fail later, after the runtime has started.
func checkPorts(cfg Config, clock clock.Clock) error {
	ports := map[string]int{"--port": cfg.Port, "--healthz-port": cfg.HealthzPort}
	if cfg.API != nil {
		ports["--api-port"] = cfg.API.Port
	}
	began := clock.Now()
	for flag, port := range ports {
		err := checkPort(port)
		for err != nil && clock.Since(began) < portPatience {
			clock.Sleep(100 * time.Millisecond)
			err = checkPort(port)
		}
		if err != nil {
			return fmt.Errorf("port %d is taken (%w); is another kubelet or API server running? choose one with %s", port, err, flag)
		}
	}
	return nil
}

// checkPort returns an error if the port cannot be opened. 0 is no port.
func checkPort(port int) error {
	if port == 0 {
		return nil
	}
	l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return err
	}
	return l.Close()
}

// checkAddresses rejects a pod network that overlaps a network of the host.
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
