package admit

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"swiftlet/internal/pod"
)

func amounts(pairs ...string) v1.ResourceList {
	list := v1.ResourceList{}
	for i := 0; i < len(pairs); i += 2 {
		list[v1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
	}
	return list
}

// newPod returns a pod with one container, after the changes.
func newPod(changes ...func(*v1.Pod)) *v1.Pod {
	p := &v1.Pod{Spec: v1.PodSpec{Containers: []v1.Container{{Name: "c"}}}}
	for _, change := range changes {
		change(p)
	}
	return p
}

func requests(pairs ...string) func(*v1.Pod) {
	return func(p *v1.Pod) { p.Spec.Containers[0].Resources.Requests = amounts(pairs...) }
}

func static(p *v1.Pod) { p.Annotations = map[string]string{pod.AnnotationSource: "file"} }

// reasonOf is the reason of a rejection, "" for nil.
func reasonOf(r *pod.Rejection) string {
	switch {
	case r == nil:
		return ""
	case r.Reason == "":
		return "rejected without a reason"
	}
	return r.Reason
}

// messageOf is the message of a rejection, "" for nil.
func messageOf(r *pod.Rejection) string {
	if r == nil {
		return ""
	}
	return r.Message
}

func TestFirstRejectionDecides(t *testing.T) {
	var ran []string
	check := func(name string, r *pod.Rejection) Check {
		return func(*v1.Pod, []*v1.Pod) *pod.Rejection { ran = append(ran, name); return r }
	}
	a, err := New(check("a", nil), check("b", pod.Reject("B", "no %d", 1)), check("c", pod.Reject("C", "no")))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(&pod.Rejection{Reason: "B", Message: "no 1"}, a.Admit(newPod(), nil)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"a", "b"}, ran); diff != "" {
		t.Error(diff)
	}
	if a, _ := New(); a.Admit(newPod(), nil) != nil {
		t.Error("an admitter without checks rejects a pod")
	}
	if _, err := New(nil); err == nil {
		t.Error("New accepts a nil check")
	}
}

func TestPodOS(t *testing.T) {
	for name, c := range map[string]struct {
		pod  *v1.Pod
		want string
	}{
		"no_os":         {newPod(), ""},
		"linux_spec":    {newPod(func(p *v1.Pod) { p.Spec.OS = &v1.PodOS{Name: v1.Linux} }), ""},
		"windows_spec":  {newPod(func(p *v1.Pod) { p.Spec.OS = &v1.PodOS{Name: v1.Windows} }), "PodOSNotSupported"},
		"windows_label": {newPod(func(p *v1.Pod) { p.Labels = map[string]string{v1.LabelOSStable: "windows"} }), "PodOSSelectorNodeLabelDoesNotMatch"},
		"linux_label":   {newPod(func(p *v1.Pod) { p.Labels = map[string]string{v1.LabelOSStable: "linux"} }), ""},
	} {
		if got := PodOS()(c.pod, nil); reasonOf(got) != c.want {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func TestSupplementalGroups(t *testing.T) {
	strict, merge := v1.SupplementalGroupsPolicyStrict, v1.SupplementalGroupsPolicyMerge
	policy := func(value *v1.SupplementalGroupsPolicy) *v1.Pod {
		return newPod(func(p *v1.Pod) { p.Spec.SecurityContext = &v1.PodSecurityContext{SupplementalGroupsPolicy: value} })
	}
	for _, c := range []struct {
		pod       *v1.Pod
		supported bool
		want      *pod.Rejection
	}{
		{newPod(), false, nil},
		{policy(&merge), false, nil},
		{policy(&strict), true, nil},
		{policy(&strict), false, &pod.Rejection{Reason: "SupplementalGroupsPolicyNotSupported", Message: "SupplementalGroupsPolicy=Strict is not supported in this node"}},
	} {
		if diff := cmp.Diff(c.want, SupplementalGroups(func() bool { return c.supported })(c.pod, nil)); diff != "" {
			t.Error(diff)
		}
	}
}

func TestSysctls(t *testing.T) {
	no := false
	with := func(name string, changes ...func(*v1.Pod)) *v1.Pod {
		return newPod(append(changes, func(p *v1.Pod) {
			p.Spec.SecurityContext = &v1.PodSecurityContext{Sysctls: []v1.Sysctl{{Name: name, Value: "1"}}}
		})...)
	}
	for name, c := range map[string]struct {
		kernel  string
		allowed []string
		pod     *v1.Pod
		want    string // message
	}{
		"no_sysctls":                    {"6.1.0", nil, newPod(), ""},
		"safe":                          {"6.1.0-13-amd64", nil, with("net.ipv4.tcp_rmem"), ""},
		"safe_with_slashes":             {"6.1.0", nil, with("net/ipv4/tcp_rmem"), ""},
		"not_safe_with_old_kernel":      {"4.4.0", nil, with("net.ipv4.tcp_rmem"), `forbidden sysctl: "net.ipv4.tcp_rmem" not allowlisted`},
		"unsafe":                        {"6.1.0", nil, with("kernel.msgmax"), `forbidden sysctl: "kernel.msgmax" not allowlisted`},
		"unsafe_allowed_by_name":        {"6.1.0", []string{"kernel.msgmax"}, with("kernel.msgmax"), ""},
		"unsafe_allowed_by_prefix":      {"6.1.0", []string{"kernel.msg*"}, with("kernel.msgmax"), ""},
		"net_sysctl_with_host_network":  {"6.1.0", nil, with("net.ipv4.tcp_syncookies", func(p *v1.Pod) { p.Spec.HostNetwork = true }), `forbidden sysctl: "net.ipv4.tcp_syncookies" not allowed with host Net enabled`},
		"ipc_sysctl_with_host_ipc":      {"6.1.0", []string{"kernel.msg*"}, with("kernel.msgmax", func(p *v1.Pod) { p.Spec.HostIPC = true }), `forbidden sysctl: "kernel.msgmax" not allowed with host IPC enabled`},
		"ipc_sysctl_with_host_network":  {"6.1.0", nil, with("kernel.shm_rmid_forced", func(p *v1.Pod) { p.Spec.HostNetwork = true }), ""},
		"user_sysctl_in_user_namespace": {"6.1.0", []string{"user.max_user_namespaces"}, with("user.max_user_namespaces", func(p *v1.Pod) { p.Spec.HostUsers = &no }), ""},
		"user_sysctl_with_host_users":   {"6.1.0", []string{"user.max_user_namespaces"}, with("user.max_user_namespaces"), `forbidden sysctl: "user.max_user_namespaces" not allowed with host User enabled`},
	} {
		t.Run(name, func(t *testing.T) {
			check, err := Sysctls(c.kernel, c.allowed)
			if err != nil {
				t.Fatal(err)
			}
			got := check(c.pod, nil)
			if messageOf(got) != c.want || got != nil && got.Reason != "SysctlForbidden" {
				t.Errorf("%+v", got)
			}
		})
	}
	for _, bad := range []string{"vm.overcommit_memory", "kernel.*", "net..x", "*net", "a b", ""} {
		if _, err := Sysctls("6.1", []string{bad}); err == nil {
			t.Errorf("Sysctls accepts %q", bad)
		}
	}
}

func TestAppArmor(t *testing.T) {
	profile := func(kind v1.AppArmorProfileType, name string) *v1.AppArmorProfile {
		return &v1.AppArmorProfile{Type: kind, LocalhostProfile: &name}
	}
	ofPod := func(a *v1.AppArmorProfile) *v1.Pod {
		return newPod(func(p *v1.Pod) { p.Spec.SecurityContext = &v1.PodSecurityContext{AppArmorProfile: a} })
	}
	ofContainer := newPod(func(p *v1.Pod) {
		p.Spec.Containers[0].SecurityContext = &v1.SecurityContext{AppArmorProfile: profile(v1.AppArmorProfileTypeLocalhost, "x")}
	})
	annotated := newPod(func(p *v1.Pod) {
		p.Annotations = map[string]string{v1.DeprecatedAppArmorBetaContainerAnnotationKeyPrefix + "c": "runtime/default"}
	})
	running := ofPod(profile(v1.AppArmorProfileTypeRuntimeDefault, ""))
	running.Status.Phase = v1.PodRunning
	const off = "Cannot enforce AppArmor: AppArmor is not enabled on the host"
	for name, c := range map[string]struct {
		pod         *v1.Pod
		ifOff, ifOn string
	}{
		"no_profile":        {newPod(), "", ""},
		"unconfined":        {ofPod(profile(v1.AppArmorProfileTypeUnconfined, "")), "", ""},
		"runtime_default":   {ofPod(profile(v1.AppArmorProfileTypeRuntimeDefault, "")), off, ""},
		"container_profile": {ofContainer, off, ""},
		"annotation":        {annotated, off, ""},
		"pod_is_running":    {running, "", ""},
	} {
		for enabled, want := range map[bool]string{false: c.ifOff, true: c.ifOn} {
			if got := AppArmor(enabled)(c.pod, nil); messageOf(got) != want || got != nil && got.Reason != "AppArmor" {
				t.Errorf("%s, enabled %v: %+v", name, enabled, got)
			}
		}
	}
	if got := AppArmor(true)(ofPod(profile(v1.AppArmorProfileTypeLocalhost, " ")), nil); reasonOf(got) != "AppArmor" {
		t.Errorf("localhost profile without a name: %+v", got)
	}
}

func TestPodLevelResourcesAndDeclaredFeatures(t *testing.T) {
	withResources := newPod(func(p *v1.Pod) { p.Spec.Resources = &v1.ResourceRequirements{Requests: amounts("cpu", "1")} })
	if got := PodLevelResources(false)(withResources, nil); reasonOf(got) != "PodLevelResourcesNotSupported" {
		t.Errorf("%+v", got)
	}
	if PodLevelResources(true)(withResources, nil) != nil || PodLevelResources(false)(newPod(), nil) != nil {
		t.Error("a pod is rejected without a reason to")
	}

	rule := v1.ContainerRestartRule{Action: v1.ContainerRestartRuleActionRestartAllContainers}
	restartsAll := newPod(func(p *v1.Pod) { p.Spec.Containers[0].RestartPolicyRules = []v1.ContainerRestartRule{rule} })
	for _, c := range []struct {
		pod      *v1.Pod
		declared []string
		want     *pod.Rejection
	}{
		{newPod(), nil, nil},
		{restartsAll, []string{"RestartAllContainersOnContainerExits"}, nil},
		{restartsAll, nil, &pod.Rejection{Reason: "PodFeatureUnsupported", Message: "Pod requires node features that are not available: RestartAllContainersOnContainerExits"}},
	} {
		check, err := DeclaredFeatures("v1.37.1", func() (*v1.Node, error) {
			return &v1.Node{Status: v1.NodeStatus{DeclaredFeatures: c.declared}}, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(c.want, check(c.pod, nil)); diff != "" {
			t.Error(diff)
		}
	}
}

func TestPressure(t *testing.T) {
	critical := int32(2_000_000_000)
	pods := map[string]*v1.Pod{
		"best effort": newPod(),
		"burstable":   newPod(requests("memory", "1Mi")),
		"tolerating": newPod(func(p *v1.Pod) {
			p.Spec.Tolerations = []v1.Toleration{{Key: v1.TaintNodeMemoryPressure, Operator: v1.TolerationOpExists}}
		}),
		"critical": newPod(func(p *v1.Pod) { p.Spec.Priority = &critical }),
		"static":   newPod(static),
	}
	for _, c := range []struct {
		current  []v1.NodeConditionType
		rejected []string
		message  string
	}{
		{nil, nil, ""},
		{[]v1.NodeConditionType{v1.NodeMemoryPressure}, []string{"best effort"}, "The node had condition: [MemoryPressure]. "},
		{[]v1.NodeConditionType{v1.NodeDiskPressure}, []string{"best effort", "burstable", "tolerating"}, "The node had condition: [DiskPressure]. "},
		{[]v1.NodeConditionType{v1.NodeMemoryPressure, v1.NodePIDPressure}, []string{"best effort", "burstable", "tolerating"}, "The node had condition: [MemoryPressure PIDPressure]. "},
	} {
		check := Pressure(func() []v1.NodeConditionType { return c.current })
		rejected := map[string]bool{}
		for _, name := range c.rejected {
			rejected[name] = true
		}
		for name, p := range pods {
			got := check(p, nil)
			var want *pod.Rejection
			if rejected[name] {
				want = &pod.Rejection{Reason: "Evicted", Message: c.message}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%v, %s: %s", c.current, name, diff)
			}
		}
	}
}

func TestShutdown(t *testing.T) {
	shuttingDown := false
	check := Shutdown(func() bool { return shuttingDown })
	if check(newPod(), nil) != nil {
		t.Error("rejected though the machine is not shutting down")
	}
	shuttingDown = true
	want := &pod.Rejection{Reason: "NodeShutdown", Message: "Pod was rejected as the node is shutting down."}
	if diff := cmp.Diff(want, check(newPod(), nil)); diff != "" {
		t.Error(diff)
	}
}
