package node

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// tree writes files below a new directory, which takes the place of "/".
func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for path, content := range files {
		path = filepath.Join(root, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func TestReadMachine(t *testing.T) {
	for name, c := range map[string]struct {
		files map[string]string
		want  Machine
	}{
		"all_files_exist": {map[string]string{
			"proc/meminfo":                  "MemTotal:       24682416 kB\nMemFree: 1 kB\nSwapTotal:       1024 kB\nHugePages_Total:       0\n",
			"sys/devices/system/cpu/online": "0-3,6,8-9\n",
			"proc/cpuinfo":                  "processor\t: 0\n",
			"sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages":    "3\n",
			"sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages": "0\n",
			"proc/sys/kernel/pid_max":                                  "4194304\n",
			"proc/sys/kernel/threads-max":                              "192000\n",
			"etc/machine-id":                                           "3d12\n",
			"sys/class/dmi/id/product_uuid":                            "ABCD-1\n",
			"proc/sys/kernel/random/boot_id":                           "5c05\n",
			"proc/sys/kernel/osrelease":                                "6.18.44\n",
			"etc/os-release":                                           "NAME=\"Debian\"\nPRETTY_NAME=\"Debian GNU/Linux 12 (bookworm)\"\n",
			"proc/self/uid_map":                                        "         0          0 4294967295\n",
		}, Machine{
			CPUs: 7, MemoryBytes: 24682416 << 10, SwapBytes: 1 << 20,
			Hugepages: map[int64]int64{2 << 20: 6 << 20, 1 << 30: 0},
			MaxPIDs:   192000, MachineID: "3d12", SystemUUID: "ABCD-1", BootID: "5c05",
			Kernel: "6.18.44", OSImage: "Debian GNU/Linux 12 (bookworm)",
		}},
		"fallbacks_without_DMI_and_CPU_hotplug": {map[string]string{
			"proc/meminfo":            "MemTotal: 1 kB\n",
			"proc/cpuinfo":            "processor\t: 0\nmodel name: x\n\nprocessor\t: 1\n",
			"etc/machine-id":          "3d12\n",
			"usr/lib/os-release":      "NAME=x\n",
			"proc/self/uid_map":       "0 100000 65536\n",
			"proc/sys/kernel/pid_max": "32768\n",
		}, Machine{
			CPUs: 2, MemoryBytes: 1024, Hugepages: map[int64]int64{}, MaxPIDs: 32768,
			MachineID: "3d12", SystemUUID: "3d12", OSImage: "Linux", UserNamespace: true,
		}},
		"UUID_from_device_tree_and_machine_id_from_dbus": {map[string]string{
			"proc/meminfo":               "MemTotal: 1 kB\n",
			"proc/cpuinfo":               "processor\t: 0\n",
			"var/lib/dbus/machine-id":    "d\n",
			"proc/device-tree/system-id": "IBM,02\x00",
		}, Machine{CPUs: 1, MemoryBytes: 1024, Hugepages: map[int64]int64{}, MachineID: "d", SystemUUID: "IBM,02", OSImage: "Unknown"}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := ReadMachine(tree(t, c.files))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestReadMachineFails(t *testing.T) {
	for name, files := range map[string]map[string]string{
		"no_meminfo":         {"proc/cpuinfo": "processor: 0\n"},
		"no_MemTotal":        {"proc/cpuinfo": "processor: 0\n", "proc/meminfo": "MemFree: 1 kB\n"},
		"invalid_MemTotal":   {"proc/cpuinfo": "processor: 0\n", "proc/meminfo": "MemTotal: lots\n"},
		"no_cpuinfo":         {"proc/meminfo": "MemTotal: 1 kB\n"},
		"invalid_CPU_list":   {"proc/meminfo": "MemTotal: 1 kB\n", "sys/devices/system/cpu/online": "0-x\n"},
		"reversed_CPU_range": {"proc/meminfo": "MemTotal: 1 kB\n", "sys/devices/system/cpu/online": "3-0\n"},
	} {
		if _, err := ReadMachine(tree(t, files)); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestReadThisMachine(t *testing.T) {
	m, err := ReadMachine("/")
	if err != nil {
		t.Fatal(err)
	}
	if m.CPUs < 1 || m.MemoryBytes < 1<<20 || m.BootID == "" || m.Kernel == "" {
		t.Errorf("%+v", m)
	}
}
