package e2e

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

// TestPodEnvironment checks hostname, resolv.conf, variables and /proc inside of pods, by their
// termination messages.
func TestPodEnvironment(t *testing.T) {
	t.Parallel()
	steadyNode(t)
	in := namespace(t)
	const resolver, proc = "cat /etc/resolv.conf", "grep -c ' /proc/' /proc/self/mountinfo; true"
	for name, c := range map[string]struct {
		edit func(*corev1.PodSpec)
		look string
		// want has a pattern for each line; NAMESPACE stands for the pod's namespace.
		want []string
	}{
		"short-name": {edit: withHostname("host", "sub", false), look: "hostname; grep sub /etc/hosts",
			want: []string{"host", `[0-9.]+\thost\.sub\.NAMESPACE\.svc\.cluster\.local\thost`}},
		"full-name": {edit: withHostname("host", "sub", true), look: "hostname; grep sub /etc/hosts",
			want: []string{`host\.sub\.NAMESPACE\.svc\.cluster\.local`, `[0-9.]+\thost\.sub\.NAMESPACE\.svc\.cluster\.local\thost`}},
		"full-name-without-domain": {edit: withHostname("host", "", true), look: "hostname", want: []string{"host"}},

		"dns-policy-none": {edit: withDNS(corev1.DNSNone), look: resolver,
			want: []string{`search one\.example two\.example`, `nameserver 192\.0\.2\.53`, `nameserver 192\.0\.2\.54`, "options edns0 ndots:2"}},
		// The host's search domains may be in between.
		"dns-policy-cluster-first": {edit: withDNS(corev1.DNSClusterFirst), look: resolver,
			want: []string{`search NAMESPACE\.svc\.cluster\.local svc\.cluster\.local cluster\.local( \S+)* one\.example two\.example`,
				`nameserver 10\.96\.0\.10`, `nameserver 192\.0\.2\.53`, `nameserver 192\.0\.2\.54`, "options edns0 ndots:2"}},

		"variables-from-a-file": {edit: withFileVariables, look: `echo "$GREETING|${ABSENT-unset}"`, want: []string{`hello there\|unset`}},

		"proc-masked":   {edit: withProcMount(corev1.DefaultProcMount), look: proc, want: []string{"[1-9][0-9]*"}},
		"proc-unmasked": {edit: withProcMount(corev1.UnmaskedProcMount), look: proc, want: []string{"0"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := scripted(name, steady.Name(), "{ "+c.look+"; } > /dev/termination-log")
			p.Spec.RestartPolicy = corev1.RestartPolicyNever
			c.edit(&p.Spec)
			create(t, in, p)
			ended := awaitPod(t, in, name, timeout, func(p *corev1.Pod) string {
				switch {
				case p == nil:
					return "the pod is not there"
				case p.Status.Phase != corev1.PodSucceeded:
					return fmt.Sprintf("the pod has not succeeded: %v", p.Status)
				}
				return ""
			})
			message := sortOptions(ended.Status.ContainerStatuses[0].State.Terminated.Message)
			want := strings.ReplaceAll(strings.Join(c.want, "\n"), "NAMESPACE", regexp.QuoteMeta(in))
			if !regexp.MustCompile(`\A` + want + `\z`).MatchString(message) {
				t.Errorf("got\n%s\nwant\n%s", message, want)
			}
		})
	}
}

// withHostname sets a pod's hostname and subdomain.
func withHostname(host, subdomain string, full bool) func(*corev1.PodSpec) {
	return func(s *corev1.PodSpec) {
		s.Hostname, s.Subdomain, s.SetHostnameAsFQDN = host, subdomain, &full
	}
}

// withDNS sets a pod's DNS policy and a DNS configuration.
func withDNS(policy corev1.DNSPolicy) func(*corev1.PodSpec) {
	return func(s *corev1.PodSpec) {
		s.DNSPolicy = policy
		s.DNSConfig = &corev1.PodDNSConfig{
			Nameservers: []string{"192.0.2.53", "192.0.2.54"},
			Searches:    []string{"one.example", "two.example"},
			Options:     []corev1.PodDNSConfigOption{{Name: "ndots", Value: ptr.To("2")}, {Name: "edns0"}},
		}
	}
}

// withFileVariables takes variables from a file that an init container writes, in a volume that the container
// does not mount.
func withFileVariables(s *corev1.PodSpec) {
	s.Volumes = []corev1.Volume{{Name: "settings", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
	s.InitContainers = []corev1.Container{{
		Name: "write", Image: s.Containers[0].Image,
		Command:      []string{"sh", "-c", `echo "GREETING='hello there'" > /settings/env`},
		VolumeMounts: []corev1.VolumeMount{{Name: "settings", MountPath: "/settings"}},
	}}
	from := func(key string, optional bool) *corev1.EnvVarSource {
		return &corev1.EnvVarSource{FileKeyRef: &corev1.FileKeySelector{VolumeName: "settings", Path: "env", Key: key, Optional: &optional}}
	}
	s.Containers[0].Env = []corev1.EnvVar{{Name: "GREETING", ValueFrom: from("GREETING", false)}, {Name: "ABSENT", ValueFrom: from("ABSENT", true)}}
}

// withProcMount sets the procMount and a user namespace, without which /proc is always masked.
func withProcMount(mount corev1.ProcMountType) func(*corev1.PodSpec) {
	return func(s *corev1.PodSpec) {
		s.HostUsers = ptr.To(false)
		s.Containers[0].SecurityContext = &corev1.SecurityContext{ProcMount: &mount}
	}
}

// sortOptions sorts the resolver's options: their order is random with the reference.
func sortOptions(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	for i, line := range lines {
		if words := strings.Fields(line); len(words) > 0 && words[0] == "options" {
			slices.Sort(words[1:])
			lines[i] = strings.Join(words, " ")
		}
	}
	return strings.Join(lines, "\n")
}

// TestSandboxConfigErrors: an event has the reason why a sandbox cannot be created. The pod runs once the
// reason is gone.
func TestSandboxConfigErrors(t *testing.T) {
	t.Parallel()
	steadyNode(t)
	in := namespace(t)

	long := sleeper("long", steady.Name())
	withHostname(strings.Repeat("x", 50), "sub", true)(&long.Spec)
	create(t, in, long)
	full := long.Spec.Hostname + ".sub." + in + ".svc.cluster.local"
	awaitEvent(t, in, "long", fmt.Sprintf("Failed to create pod sandbox: failed to construct FQDN from pod hostname and cluster domain, "+
		"FQDN %s is too long (64 characters is the max, %d characters requested)", full, len(full)))

	// The API server rejects pods whose RuntimeClass does not exist, so it is deleted afterwards.
	class := in
	addClass(t, class)
	p := sleeper("classy", steady.Name())
	p.Spec.RuntimeClassName = &class
	p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "test/class-is-gone"}}
	create(t, in, p)
	removeClass(t.Context(), t, class)
	awaitClassesSeen(t, in)
	ungate := []byte(`[{"op": "remove", "path": "/spec/schedulingGates"}]`)
	if _, err := client().CoreV1().Pods(in).Patch(t.Context(), p.Name, types.JSONPatchType, ungate, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	awaitEvent(t, in, p.Name, fmt.Sprintf("Failed to create pod sandbox: runtimeclass.node.k8s.io %q not found", class))
	addClass(t, class)
	t.Cleanup(func() { removeClass(context.Background(), t, class) })
	awaitPod(t, in, p.Name, timeout, ready)
}

// awaitClassesSeen waits until the node has seen all changes of RuntimeClasses: it sees them in order,
// and can run a pod of a new class when it has seen that one.
func awaitClassesSeen(t *testing.T, in string) {
	t.Helper()
	last := in + "-last"
	addClass(t, last)
	t.Cleanup(func() { removeClass(context.Background(), t, last) })
	p := sleeper("of-last-class", steady.Name())
	p.Spec.RuntimeClassName = &last
	startPod(t, in, p)
}

// addClass creates a RuntimeClass of the default handler.
func addClass(t *testing.T, name string) {
	t.Helper()
	class := &nodev1.RuntimeClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Handler: "runc"}
	if _, err := client().NodeV1().RuntimeClasses().Create(t.Context(), class, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func removeClass(ctx context.Context, t *testing.T, name string) {
	t.Helper()
	if err := client().NodeV1().RuntimeClasses().Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
		t.Error(err)
	}
}
