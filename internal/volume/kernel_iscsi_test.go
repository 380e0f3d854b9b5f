package volume

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"swiftlet/internal/volume/mounts"
	"swiftlet/test/poll"
)

// realTarget sets up an iSCSI target in the kernel and starts iscsid.
const realTarget = `set -e
modprobe -a configfs loop target_core_mod target_core_file iscsi_target_mod iscsi_tcp sd_mod
mountpoint -q /sys/kernel/config || mount -t configfs configfs /sys/kernel/config
truncate -s 32M "$DIR/backing"
core=/sys/kernel/config/target/core/fileio_0/disk
mkdir -p "$core"
echo "fd_dev_name=$DIR/backing,fd_dev_size=33554432" > "$core/control"
echo 1 > "$core/enable"
group=/sys/kernel/config/target/iscsi/$TARGET/tpgt_1
mkdir -p "$group/np/127.0.0.1:3260" "$group/lun/lun_0"
ln -s "$core" "$group/lun/lun_0/disk"
for attribute in demo_mode_write_protect=0 generate_node_acls=1 cache_dynamic_acls=1 authentication=0; do
	echo "${attribute#*=}" > "$group/attrib/${attribute%=*}"
done
echo 1 > "$group/enable"
mkdir -p /etc/iscsi /run/lock/iscsi /var/lib/iscsi
[ -s /etc/iscsi/initiatorname.iscsi ] || echo InitiatorName=iqn.2026-01.test:node > /etc/iscsi/initiatorname.iscsi
[ -e /etc/iscsi/iscsid.conf ] || : > /etc/iscsi/iscsid.conf
iscsid
`

// TestKernelISCSI logs in to a real target with the real iscsiadm: the second pod reads what the first
// has written, and no session or disk is left.
func TestKernelISCSI(t *testing.T) {
	// It loads modules, sets up a target and starts a daemon.
	if !strings.Contains(readFile(t, "/proc/cpuinfo"), "User Mode Linux") {
		t.Skip("only on a machine of its own: make test-cgroup2")
	}
	if _, err := exec.LookPath("iscsiadm"); err != nil {
		t.Fatal("open-iscsi is missing: hack/with-iscsi.sh brings it")
	}
	n := newNode(t)
	n.cfg.SysDir, n.cfg.DevDir = "/sys", "/dev"
	n.plugins = newPlugins(n.cfg, n.deps, mounts.Tools{}, nil)
	const target = "iqn.2026-01.test:store"
	setUp := exec.Command("sh", "-c", realTarget)
	setUp.Env = append(os.Environ(), "DIR="+t.TempDir(), "TARGET="+target)
	if out, err := setUp.CombinedOutput(); err != nil {
		t.Fatalf("set up a target: %v: %s", err, out)
	}
	source := n.claimed(v1.PersistentVolumeSource{ISCSI: &v1.ISCSIPersistentVolumeSource{
		TargetPortal: "127.0.0.1", IQN: target, ISCSIInterface: "default", FSType: "ext4",
	}})
	for i, uid := range []string{"a", "b"} {
		file := filepath.Join(n.mount(n.podNamed(uid, source)), "file")
		if i == 0 {
			if err := os.WriteFile(file, []byte("kept"), 0o600); err != nil {
				t.Fatal(err)
			}
		} else if got := readFile(t, file); got != "kept" {
			t.Errorf("the second pod reads %q", got)
		}
		n.unmount(types.UID(uid))
		poll.Until(t, "the logout", func() bool {
			sessions, err := filepath.Glob("/sys/class/iscsi_session/*")
			disks, globErr := filepath.Glob("/sys/block/sd*")
			return err == nil && globErr == nil && len(sessions)+len(disks) == 0
		})
		poll.Until(t, "nothing to be left", func() bool {
			ids, err := filepath.Glob(filepath.Join(n.root, "plugins/kubernetes.io/iscsi/*"))
			return err == nil && len(ids) == 0
		})
	}
}
