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

// TestPodSees runs pods that say at their end what they see of their names, their resolver,
// their variables and their /proc.
func TestPodSees(t *testing.T) {
	t.Parallel()
	steadyNode(t)
	in := namespace(t)
	const resolver, proc = "cat /etc/resolv.conf", "grep -c ' /proc/' /proc/self/mountinfo; true"
	for name, c := range map[string]struct {
		edit func(*corev1.PodSpec)
		look string
		// want has a pattern for each line; NAMESPACE stands for the pod's.
		want []string
	}{
		"short-name": {edit: named("host", "sub", false), look: "hostname; grep sub /etc/hosts",
			want: []string{"host", `[0-9.]+\thost\.sub\.NAMESPACE\.svc\.cluster\.local\thost`}},
		"full-name": {edit: named("host", "sub", true), look: "hostname; grep sub /etc/hosts",
			want: []string{`host\.sub\.NAMESPACE\.svc\.cluster\.local`, `[0-9.]+\thost\.sub\.NAMESPACE\.svc\.cluster\.local\thost`}},
		"full-name-without-domain": {edit: named("host", "", true), look: "hostname", want: []string{"host"}},

		"dns-of-its-own": {edit: resolving(corev1.DNSNone), look: resolver,
			want: []string{`search one\.example two\.example`, `nameserver 192\.0\.2\.53`, `nameserver 192\.0\.2\.54`, "options edns0 ndots:2"}},
		// What the machine's own resolver searches may stand between.
		"dns-beside-the-cluster": {edit: resolving(corev1.DNSClusterFirst), look: resolver,
			want: []string{`search NAMESPACE\.svc\.cluster\.local svc\.cluster\.local cluster\.local( \S+)* one\.example two\.example`,
				`nameserver 10\.96\.0\.10`, `nameserver 192\.0\.2\.53`, `nameserver 192\.0\.2\.54`, "options edns0 ndots:2"}},

		"variables-from-a-file": {edit: readingFile, look: `echo "$GREETING|${ABSENT-unset}"`, want: []string{`hello there\|unset`}},

		"proc-masked":   {edit: proceeding(corev1.DefaultProcMount), look: proc, want: []string{"[1-9][0-9]*"}},
		"proc-unmasked": {edit: proceeding(corev1.UnmaskedProcMount), look: proc, want: []string{"0"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := scripted(name, steady.Name(), "{ "+c.look+"; } > /dev/termination-log")
			p.Spec.RestartPolicy = corev1.RestartPolicyNever
			c.edit(&p.Spec)
			create(t, in, p)
			ended := awaitPod(t, in, name, usual, func(p *corev1.Pod) string {
				switch {
				case p == nil:
					return "the pod is not there"
				case p.Status.Phase != corev1.PodSucceeded:
					return fmt.Sprintf("the pod has not succeeded: %v", p.Status)
				}
				return ""
			})
			said := sortOptions(ended.Status.ContainerStatuses[0].State.Terminated.Message)
			want := strings.ReplaceAll(strings.Join(c.want, "\n"), "NAMESPACE", regexp.QuoteMeta(in))
			if !regexp.MustCompile(`\A` + want + `\z`).MatchString(said) {
				t.Errorf("it sees\n%s\nwant\n%s", said, want)
			}
		})
	}
}

// named gives a pod its names.
func named(host, subdomain string, full bool) func(*corev1.PodSpec) {
	return func(s *corev1.PodSpec) {
		s.Hostname, s.Subdomain, s.SetHostnameAsFQDN = host, subdomain, &full
	}
}

// resolving gives a pod a resolver of its own, beside what the policy gives it.
func resolving(policy corev1.DNSPolicy) func(*corev1.PodSpec) {
	return func(s *corev1.PodSpec) {
		s.DNSPolicy = policy
		s.DNSConfig = &corev1.PodDNSConfig{
			Nameservers: []string{"192.0.2.53", "192.0.2.54"},
			Searches:    []string{"one.example", "two.example"},
			Options:     []corev1.PodDNSConfigOption{{Name: "ndots", Value: ptr.To("2")}, {Name: "edns0"}},
		}
	}
}

// readingFile takes variables from a file that an init container writes, and that the
// container itself does not see.
func readingFile(s *corev1.PodSpec) {
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

// proceeding gives a pod users of its own, without which /proc is always masked.
func proceeding(mount corev1.ProcMountType) func(*corev1.PodSpec) {
	return func(s *corev1.PodSpec) {
		s.HostUsers = ptr.To(false)
		s.Containers[0].SecurityContext = &corev1.SecurityContext{ProcMount: &mount}
	}
}

// sortOptions puts the resolver's options in order: the reference gives them in any.
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

// TestSandboxThatCannotBe: the user is told why a pod cannot even be given a sandbox, and the
// pod runs once it can.
func TestSandboxThatCannotBe(t *testing.T) {
	t.Parallel()
	steadyNode(t)
	in := namespace(t)

	long := sleeper("long", steady.Name())
	named(strings.Repeat("x", 50), "sub", true)(&long.Spec)
	create(t, in, long)
	full := long.Spec.Hostname + ".sub." + in + ".svc.cluster.local"
	awaitEvent(t, in, "long", fmt.Sprintf("Failed to create pod sandbox: failed to construct FQDN from pod hostname and cluster domain, "+
		"FQDN %s is too long (64 characters is the max, %d characters requested)", full, len(full)))

	// The API server lets no pod in whose class is not there, so that it must go afterwards.
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
	awaitPod(t, in, p.Name, usual, ready)
}

// awaitClassesSeen waits until the node knows of all changes to classes that were made: it
// hears of them in their order, and can run a pod of the last one when it knows that.
func awaitClassesSeen(t *testing.T, in string) {
	t.Helper()
	last := in + "-last"
	addClass(t, last)
	t.Cleanup(func() { removeClass(context.Background(), t, last) })
	p := sleeper("of-last-class", steady.Name())
	p.Spec.RuntimeClassName = &last
	startPod(t, in, p)
}

// addClass makes a class of the usual runtime.
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
