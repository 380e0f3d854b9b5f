package allocation

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"swiftlet/internal/pod"
)

// A corrupt file is moved aside, and a running pod keeps the resources that it was allocated: its resize is
// evaluated again, not granted by the loss of the file.
func TestCorruptFileIsRecovered(t *testing.T) {
	for name, content := range map[string]string{
		"truncated": `{"data":"{\"entries\":{`, "empty": "", "zeros": "\x00\x00\x00", "checksum": `{"data":"{}","checksum":1}`,
		"other_format": `[]`, "wrong_data": `{"data":"[]","checksum":` + sumOf("[]") + `}`,
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), Allocated)
			if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
			var log bytes.Buffer
			state, err := OpenOrRecover(path, slog.New(slog.NewTextHandler(&log, nil)))
			if err != nil {
				t.Fatal(err)
			}
			if aside, err := os.ReadFile(path + ".bad"); err != nil || string(aside) != content {
				t.Errorf("the file is not kept: %q, %v", aside, err)
			}
			if !strings.Contains(log.String(), path) {
				t.Errorf("the log does not name the file: %s", log.String())
			}
			n := newNode(t)
			n.deps.Allocated = state
			n.full = pod.Reject("OutOfcpu", "full")
			p := testPod("2", 2) // its resize from 1 to 2 CPUs was deferred
			p.Status.ContainerStatuses = []v1.ContainerStatus{{Name: "c", AllocatedResources: v1.ResourceList{v1.ResourceCPU: resource.MustParse("1")}}}
			n.Admit(p)
			allocated, resize, _ := n.Resize(p, noPods, "")
			if cpu(allocated) != "1" || resize.Pending == nil {
				t.Errorf("allocated %s CPUs, resize %+v; want 1 and a pending resize", cpu(allocated), resize)
			}
			// A pod that has not run gets what its spec says.
			fresh := testPod("3", 1)
			fresh.UID = "fresh"
			n.Admit(fresh)
			if allocated, differ := n.Allocated(fresh); differ || cpu(allocated) != "3" {
				t.Errorf("a new pod is allocated %s CPUs", cpu(allocated))
			}
			if err := state.Written(t.Context()); err != nil {
				t.Fatal(err)
			}
			if again, err := Open(path); err != nil {
				t.Error(err)
			} else if r, _ := again.Get("u"); cpuOf(r) != "1" {
				t.Errorf("after a restart the allocation is %v", r)
			}
		})
	}
}

func sumOf(data string) string {
	return resource.NewQuantity(int64(checksum(data)), resource.DecimalSI).AsDec().String()
}
