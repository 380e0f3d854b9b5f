package bugreport

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
	kubeletconfig "k8s.io/kubelet/config/v1beta1"
	"sigs.k8s.io/yaml"

	"swiftlet/internal/boundedio"
	"swiftlet/internal/contain"
	"swiftlet/internal/cri"
)

// fact is something to read of the machine.
type fact struct {
	name string
	read func(context.Context) (string, error)
}

// readHost adds what is read of the machine itself.
func (c *collector) readHost(ctx context.Context) {
	if c.cfg.Elsewhere != "" {
		c.archive.fail("host", "not read: "+c.cfg.Elsewhere)
		return
	}
	facts := []fact{
		{"host/kernel.txt", kernel}, {"host/mounts.txt", c.mounts}, {"host/disks.txt", c.disks},
		{"host/cgroups.txt", c.cgroups}, {"host/runtime.txt", c.runtimeVersion},
	}
	if c.cfg.Root != "" {
		facts = append(facts, fact{"host/kubelet.yaml", c.configFile})
	}
	for _, f := range facts {
		c.progress(f.name)
		text, err := f.read(ctx)
		if text != "" {
			c.add(f.name, text, beginning, "")
		}
		if err != nil {
			c.fail(f.name, err)
		}
	}
}

// kernelFiles are read as they are.
var kernelFiles = strings.Fields(`/etc/os-release /proc/version /proc/uptime /proc/loadavg /proc/meminfo /proc/filesystems /proc/cgroups /proc/self/cgroup
	/proc/pressure/cpu /proc/pressure/memory /proc/pressure/io /proc/swaps /proc/sys/kernel/pid_max /proc/sys/kernel/threads-max
	/proc/sys/kernel/tainted /proc/sys/kernel/keys/maxkeys /proc/sys/fs/file-nr /proc/sys/fs/inotify/max_user_instances
	/proc/sys/fs/inotify/max_user_watches /proc/sys/vm/overcommit_memory /proc/sys/vm/panic_on_oom /proc/sys/net/ipv4/ip_forward
	/proc/sys/net/ipv6/conf/all/forwarding /proc/sys/net/bridge/bridge-nf-call-iptables /proc/sys/net/netfilter/nf_conntrack_count
	/proc/sys/net/netfilter/nf_conntrack_max /sys/kernel/security/lsm /sys/module/apparmor/parameters/enabled`)

// kernel describes the operating system. A file that the kernel does not have says so.
func kernel(context.Context) (string, error) {
	var b strings.Builder
	for _, path := range kernelFiles {
		text, err := boundedio.ReadFile(path, boundedio.Small)
		if err != nil {
			fmt.Fprintf(&b, "%s: %v\n\n", path, err)
			continue
		}
		fmt.Fprintf(&b, "%s:\n%s\n", path, text)
	}
	text, err := boundedio.ReadFile("/proc/cmdline", boundedio.Small)
	fmt.Fprintf(&b, "/proc/cmdline:\n%s\n", bootParameters(string(text)))
	return b.String(), err
}

// plainParameters are parameters of the kernel whose values are kept. Programs read others, some of them secrets.
var plainParameters = fields(`ro rw quiet root rootfstype console cgroup_no_v1 cgroup_disable cgroup_enable cgroup.memory swapaccount psi init
	systemd.unified_cgroup_hierarchy systemd.legacy_systemd_cgroup_controller isolcpus nohz_full rcu_nocbs hugepages hugepagesz
	default_hugepagesz transparent_hugepage mitigations iommu intel_iommu amd_iommu lsm security apparmor selinux audit mem maxcpus nosmt`)

func bootParameters(line string) string {
	words := strings.Fields(line)
	for i, word := range words {
		if name, _, found := strings.Cut(word, "="); !plainParameters[name] {
			words[i] = redacted
			if found {
				words[i] = name + "=" + redacted
			}
		}
	}
	return strings.Join(words, " ") + "\n"
}

// statfsTimeout limits statfs of a file system that may hang.
const statfsTimeout = 3 * time.Second

// disks lists the usage of the kubelet's file systems.
func (c *collector) disks(ctx context.Context) (string, error) {
	dirs := []string{"/", "/tmp", "/var/log", "/var/lib/containerd", "/run", c.settings.rootDir, c.settings.podLogs}
	if c.cfg.Root != "" {
		dirs = append(dirs, c.cfg.Root, c.cfg.RunDir)
	}
	slices.Sort(dirs)
	var b strings.Builder
	for _, dir := range slices.Compact(dirs) {
		limited, cancel := context.WithTimeout(ctx, statfsTimeout)
		fs, err := contain.Await(limited, c.calls, "statfs "+dir, func() (fs unix.Statfs_t, err error) {
			err = unix.Statfs(dir, &fs)
			return fs, err
		})
		cancel()
		if err != nil {
			fmt.Fprintf(&b, "%s: %v\n", dir, err)
			continue
		}
		size := uint64(fs.Bsize)
		fmt.Fprintf(&b, "%s: %d bytes, %d free, %d available; %d inodes, %d free; type %#x\n",
			dir, fs.Blocks*size, fs.Bfree*size, fs.Bavail*size, fs.Files, fs.Ffree, fs.Type)
	}
	return b.String(), nil
}

// runtimeVersion asks the container runtime. Its verbose status is left out: it may have credentials of registries.
func (c *collector) runtimeVersion(ctx context.Context) (string, error) {
	client, err := cri.Dial(cri.Config{RuntimeEndpoint: c.settings.runtime, RequestTimeout: requestTimeout})
	if err != nil {
		return "", err
	}
	defer client.Close()
	version, err := client.Version(ctx)
	if err != nil {
		return "", err
	}
	text := fmt.Sprintf("%s %s, CRI %s\n", version.RuntimeName, version.RuntimeVersion, version.RuntimeApiVersion)
	status, err := client.Status(ctx, false)
	if err != nil {
		return text, err
	}
	for _, condition := range status.Status.Conditions {
		text += fmt.Sprintf("%s: %v %s %s\n", condition.Type, condition.Status, condition.Reason, condition.Message)
	}
	return text, nil
}

// configFile is the configuration that `swiftlet up` has written, which shows also if the kubelet does not run.
func (c *collector) configFile(context.Context) (string, error) {
	text, err := boundedio.ReadFile(filepath.Join(c.cfg.RunDir, "kubelet.yaml"), boundedio.Small)
	if err != nil {
		return "", err
	}
	var k kubeletconfig.KubeletConfiguration
	if err := yaml.Unmarshal(text, &k); err != nil {
		return "", fmt.Errorf("read configuration: %w", err)
	}
	page, err := json.Marshal(map[string]any{"kubeletconfig": k})
	if err != nil {
		return "", fmt.Errorf("encode configuration: %w", err)
	}
	kept, err := c.configz(page)
	return string(kept), err
}
