package e2e

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

// A pod that does not share the host's users has ids of its own, which no other pod has.
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
		// What it sees of its ids is what it has to say at its end.
		p.Spec.RestartPolicy = corev1.RestartPolicyNever
		p.Spec.Containers[0].Command = []string{"sh", "-c",
			"touch /data/mine && { tr -s ' ' < /proc/self/uid_map; stat -c 'owner %u' /data/mine; } > /dev/termination-log"}
		create(t, in, p)
	}
	for _, name := range []string{"one", "two"} {
		ended := awaitPod(t, in, name, usual, func(p *corev1.Pod) string {
			if p == nil {
				return "the pod is not there"
			}
			if p.Status.Phase != corev1.PodSucceeded {
				return fmt.Sprintf("the pod has not succeeded: %v", p.Status)
			}
			return ""
		})
		said := strings.Fields(ended.Status.ContainerStatuses[0].State.Terminated.Message)
		if len(said) != 5 || said[0] != "0" || said[1] == "0" || said[2] != "65536" || said[4] != "0" {
			t.Fatalf("%s says of its ids: %q", name, said)
		}
		if other, twice := seen[said[1]]; twice {
			t.Errorf("%s and %s both begin at %s", name, other, said[1])
		}
		seen[said[1]] = name
	}
}
