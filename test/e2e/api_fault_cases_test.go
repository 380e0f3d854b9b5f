package e2e

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"swiftlet/test/apifaults"
	"swiftlet/test/bed"
)

// replaceCertificate gives the API server a new certificate of the same authority.
func (f *faultyAPI) replaceCertificate(t *testing.T) {
	t.Helper()
	certificate, err := f.authority.Issue(f.host)
	if err != nil {
		t.Fatal(err)
	}
	f.proxy.SetCertificate(certificate)
}

// replaceAuthority gives the API server a certificate of an authority that the node does not trust.
func (f *faultyAPI) replaceAuthority(t *testing.T) {
	t.Helper()
	var err error
	if f.authority, err = apifaults.NewAuthority(); err != nil {
		t.Fatal(err)
	}
	f.replaceCertificate(t)
}

// trustAuthority writes the authority to the file that the node's kubeconfig names.
func (f *faultyAPI) trustAuthority(t *testing.T) {
	t.Helper()
	write(t, f.node.Path(faultyCA), f.authority.PEM())
}

// startTwin starts another node with the name and the credentials of the first.
func (f *faultyAPI) startTwin(t *testing.T) {
	t.Helper()
	if f.twin == nil {
		f.twin = bareNode(t, "twin")
	}
	write(t, f.twin.Path("/etc/kubernetes/kubelet.kubeconfig"), f.direct)
	if err := os.MkdirAll(f.twin.Path("/etc/kubernetes/flags"), 0o755); err != nil {
		t.Fatal(err)
	}
	err := f.twin.StartKubelet(t.Context(), bed.KubeletOptions{Kind: kubelet, Flags: []string{"--hostname-override=" + f.node.Name()}})
	if err != nil {
		t.Fatal(err)
	}
}

func (f *faultyAPI) stopTwin(t *testing.T) {
	t.Helper()
	if err := f.twin.KillKubelet(); err != nil {
		t.Fatal(err)
	}
}

// addUnknownFields adds fields that a newer API server could have.
func addUnknownFields(object map[string]any) {
	future := map[string]any{"nested": []any{map[string]any{"a": 1.5}, "b", nil}, "long": strings.Repeat("x", 10_000)}
	object["future"] = future
	for _, name := range []string{"metadata", "spec", "status"} {
		if fields, ok := object[name].(map[string]any); ok {
			fields["futureField"] = future
		}
	}
	for _, c := range containersOf(object) {
		c["futureField"] = future
	}
}

// spoilNode adds unknown fields and invalid values to the Node.
func spoilNode(object map[string]any) {
	addUnknownFields(object)
	if spec, ok := object["spec"].(map[string]any); ok {
		spec["taints"] = []any{map[string]any{"key": "", "effect": "Sometimes"}, map[string]any{"key": "../..", "effect": ""}}
		spec["podCIDRs"] = []any{"not a network", ""}
	}
	if metadata, ok := object["metadata"].(map[string]any); ok {
		metadata["labels"] = map[string]any{"": "", "a/b/c": strings.Repeat("x", 1000)}
	}
}

// spoils are changes of a pod that validation would reject, by the pod's name. Names that climb stay
// within the node's own directories.
var spoils = map[string]func(metadata, spec map[string]any, container map[string]any){
	"bad-restart-policy": func(_, spec, _ map[string]any) { spec["restartPolicy"] = "Sometimes" },
	"bad-dns-policy":     func(_, spec, _ map[string]any) { spec["dnsPolicy"] = "Future" },
	"bad-hostname":       func(_, spec, _ map[string]any) { spec["hostname"] = "../../etc/x\n" },
	"bad-grace-period":   func(_, spec, _ map[string]any) { spec["terminationGracePeriodSeconds"] = -5 },
	"bad-deadline":       func(_, spec, _ map[string]any) { spec["activeDeadlineSeconds"] = -5 },
	"bad-volume-kind": func(_, spec, _ map[string]any) {
		spec["volumes"] = []any{map[string]any{"name": "v", "future": map[string]any{}}}
	},
	"bad-volume-name": func(_, spec, _ map[string]any) {
		spec["volumes"] = []any{map[string]any{"name": "../../../../escape-volume", "emptyDir": map[string]any{}}}
	},
	"bad-no-container":   func(_, spec, _ map[string]any) { spec["containers"] = []any{} },
	"bad-container-name": func(_, _, c map[string]any) { c["name"] = "../escape-container" },
	"bad-no-name":        func(_, _, c map[string]any) { c["name"] = "" },
	"bad-image":          func(_, _, c map[string]any) { c["image"] = "" },
	"bad-port": func(_, _, c map[string]any) {
		c["ports"] = []any{map[string]any{"containerPort": 99999, "hostPort": -1}}
	},
	"bad-mount": func(_, _, c map[string]any) {
		c["volumeMounts"] = []any{map[string]any{"name": "none", "mountPath": "", "subPath": "../../.."}}
	},
	"bad-probe":       func(_, _, c map[string]any) { c["livenessProbe"] = map[string]any{"periodSeconds": -1} },
	"bad-pull-policy": func(_, _, c map[string]any) { c["imagePullPolicy"] = "Perhaps" },
	"bad-limit": func(_, _, c map[string]any) {
		c["resources"] = map[string]any{"limits": map[string]any{"cpu": "-1", "memory": "-1Gi"}}
	},
	"bad-huge-limit": func(_, _, c map[string]any) {
		c["resources"] = map[string]any{"limits": map[string]any{"cpu": "9e18", "memory": "9e18"}}
	},
	"bad-same-containers": func(_, spec, c map[string]any) { spec["containers"] = []any{c, maps.Clone(c)} },
	"bad-sysctl": func(_, spec, _ map[string]any) {
		spec["securityContext"] = map[string]any{"sysctls": []any{map[string]any{"name": "../x", "value": "\n"}}}
	},
	"bad-uid":       func(metadata, _, _ map[string]any) { metadata["uid"] = "../escape-uid" },
	"bad-long-uid":  func(metadata, _, _ map[string]any) { metadata["uid"] = strings.Repeat("u", 300) },
	"bad-no-uid":    func(metadata, _, _ map[string]any) { metadata["uid"] = "" },
	"bad-namespace": func(metadata, _, _ map[string]any) { metadata["namespace"] = "escape/deeper" },
}

// spoilPod changes the pods that spoils names.
func spoilPod(object map[string]any) {
	metadata, _ := object["metadata"].(map[string]any)
	spec, _ := object["spec"].(map[string]any)
	name, _ := metadata["name"].(string)
	containers := containersOf(object)
	if spoil := spoils[name]; spoil != nil && len(containers) > 0 {
		spoil(metadata, spec, containers[0])
	}
}

func containersOf(object map[string]any) (containers []map[string]any) {
	spec, _ := object["spec"].(map[string]any)
	list, _ := spec["containers"].([]any)
	for _, c := range list {
		if fields, ok := c.(map[string]any); ok {
			containers = append(containers, fields)
		}
	}
	return containers
}

// createSpoiled creates the pods that spoilPod changes on their way to the node.
func (f *faultyAPI) createSpoiled(t *testing.T) {
	t.Helper()
	f.proxy.Set(apifaults.Rewriting("pods", spoilPod))
	for _, name := range slices.Sorted(maps.Keys(spoils)) {
		create(t, f.space, sleeper(name, f.node.Name()))
	}
}

// deleteSpoiled deletes them and waits until they are gone. Nothing may be left outside of their places.
func (f *faultyAPI) deleteSpoiled(t *testing.T) {
	t.Helper()
	for _, pattern := range []string{"/var/lib/kubelet/escape*", "/var/lib/kubelet/pods/*/escape*", "/var/log/pods/escape*"} {
		found, err := filepath.Glob(f.node.Path(pattern))
		if err != nil || len(found) > 0 {
			t.Errorf("files outside of the pods' directories: %v %v", found, err)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(spoils)) {
		if err := client().CoreV1().Pods(f.space).Delete(t.Context(), name, metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](1)}); err != nil {
			t.Error(err)
		}
	}
	eventually(t, timeoutFor(timeout, 4*timeout), func() string {
		list, err := client().CoreV1().Pods(f.space).List(t.Context(), metav1.ListOptions{})
		if err != nil {
			return err.Error()
		}
		var left []string
		for _, p := range list.Items {
			if spoils[p.Name] != nil {
				left = append(left, p.Name)
			}
		}
		return strings.Join(left, ", ")
	})
}
