package e2e

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

// TestUserNamespaces: a pod with hostUsers: false has a range of IDs that no other pod has.
func TestUserNamespaces(t *testing.T) {
	t.Parallel()
	in := namespace(t)
	seen := map[string]string{}
	for _, name := range []string{"one", "two"} {
		p := sleeper(name, steady.Name())
		p.Spec.HostUsers = ptr.To(false)
		p.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
		p.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "data", MountPath: "/data"}}
		p.Spec.Containers[0].TerminationMessagePolicy = corev1.TerminationMessageReadFile
		// It writes its ID mapping to the termination message.
		p.Spec.RestartPolicy = corev1.RestartPolicyNever
		p.Spec.Containers[0].Command = []string{"sh", "-c",
			"touch /data/mine && { tr -s ' ' < /proc/self/uid_map; stat -c 'owner %u' /data/mine; } > /dev/termination-log"}
		create(t, in, p)
	}
	for _, name := range []string{"one", "two"} {
		ended := awaitPod(t, in, name, timeout, func(p *corev1.Pod) string {
			if p == nil {
				return "the pod is not there"
			}
			if p.Status.Phase != corev1.PodSucceeded {
				return fmt.Sprintf("the pod has not succeeded: %v", p.Status)
			}
			return ""
		})
		fields := strings.Fields(ended.Status.ContainerStatuses[0].State.Terminated.Message)
		if len(fields) != 5 || fields[0] != "0" || fields[1] == "0" || fields[2] != "65536" || fields[4] != "0" {
			t.Fatalf("ID mapping of %s: %q", name, fields)
		}
		if other, twice := seen[fields[1]]; twice {
			t.Errorf("the ID ranges of %s and %s both begin at %s", name, other, fields[1])
		}
		seen[fields[1]] = name
	}
}
