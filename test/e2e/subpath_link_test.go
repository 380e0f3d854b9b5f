package e2e

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// TestSubPathLink mounts subPaths that are absolute links. They are followed as the node sees them: one that
// ends inside the volume works, also if the directory has to be created there, and one that ends outside
// is rejected.
func TestSubPathLink(t *testing.T) {
	t.Parallel()
	node, in := steadyNode(t), namespace(t)
	const dir = "/var/lib/linked"
	out, err := node.Exec(t.Context(), "sh", "-ec", "mkdir -p "+dir+"/releases/2 "+dir+"-other; echo second > "+dir+"/releases/2/file; "+
		"ln -s "+dir+"/releases/2 "+dir+"/current; ln -s "+dir+"-other "+dir+"/outside")
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	volume := corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: dir}}
	create(t, in, addVolume(sleeper("outside", node.Name()), "linked", volume, "outside"))
	for name, c := range map[string]struct{ subPath, command, want string }{
		"existing": {"current", "cat /linked/file", "second\n"},
		"created":  {"current/logs", "echo x > /linked/log", ""},
	} {
		startPod(t, in, addVolume(sleeper(name, node.Name()), "linked", volume, c.subPath))
		if got := kubectl(t, "-n", in, "exec", name, "--", "sh", "-c", c.command); got != c.want {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
	if out, err := node.Exec(t.Context(), "cat", dir+"/releases/2/logs/log"); err != nil || out != "x\n" {
		t.Errorf("the created directory has %q (%v)", out, err)
	}
	awaitEvent(t, in, "outside", `failed to prepare subPath for volumeMount "linked" of container "c"`)
}
