package podstatus

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"swiftlet/internal/pod"
)

var (
	always = v1.ContainerRestartPolicyAlways
	never  = v1.ContainerRestartPolicyNever
	now    = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
)

// newPod returns a pod with the named containers: i is an init container, s a sidecar, all others are
// main containers.
func newPod(policy v1.RestartPolicy, names string, change ...func(*v1.Pod)) *v1.Pod {
	p := &v1.Pod{}
	p.Spec.RestartPolicy = policy
	for _, name := range names {
		c := v1.Container{Name: string(name), Image: "image"}
		switch name {
		case 's':
			c.RestartPolicy = &always
			p.Spec.InitContainers = append(p.Spec.InitContainers, c)
		case 'i':
			p.Spec.InitContainers = append(p.Spec.InitContainers, c)
		default:
			p.Spec.Containers = append(p.Spec.Containers, c)
		}
	}
	for _, f := range change {
		f(p)
	}
	return p
}

func deleted(p *v1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: now} }

// withPhase gives the pod a phase in the API server.
func withPhase(phase v1.PodPhase) func(*v1.Pod) { return func(p *v1.Pod) { p.Status.Phase = phase } }

// restartAll adds a rule that restarts all containers when a exits with 7.
func restartAll(p *v1.Pod) {
	c := &p.Spec.Containers[0]
	c.RestartPolicy = &never
	c.RestartPolicyRules = []v1.ContainerRestartRule{{
		Action:    v1.ContainerRestartRuleActionRestartAllContainers,
		ExitCodes: &v1.ContainerRestartRuleOnExitCodes{Operator: v1.ContainerRestartRuleOnExitCodesOpIn, Values: []int32{7}},
	}}
}

// observe parses a line such as "ready a:run b:7,1": the sandbox, and each container's instances,
// newest first; made is created, gone is in unknown state.
func observe(line string) *pod.Observed {
	o := &pod.Observed{}
	words := strings.Fields(line)
	if words[0] != "none" {
		o.Sandboxes = []pod.Sandbox{{Ready: words[0] == "ready", IPs: []string{"10.0.0.1"}, CreatedAt: now}}
	}
	states := map[string]pod.ContainerState{"run": pod.Running, "made": pod.Created, "gone": pod.Unknown}
	for _, word := range words[1:] {
		name, all, _ := strings.Cut(word, ":")
		instances := strings.Split(all, ",")
		for i, state := range instances {
			c := pod.Container{Name: name, RestartCount: len(instances) - 1 - i, CreatedAt: now.Add(-time.Duration(i)), State: pod.Exited}
			c.ID = fmt.Sprintf("%s%d", name, c.RestartCount)
			if known, ok := states[state]; ok {
				c.State = known
			} else {
				fmt.Sscan(state, &c.ExitCode)
			}
			o.Containers = append(o.Containers, c)
		}
	}
	return o
}

// show formats a status as a line: the phase, and of each container its state, last termination,
// restart count and readiness.
func show(s v1.PodStatus) string {
	state := func(s v1.ContainerState) string {
		switch {
		case s.Running != nil:
			return "run"
		case s.Waiting != nil:
			return s.Waiting.Reason
		case s.Terminated != nil:
			return fmt.Sprintf("%s(%d)", s.Terminated.Reason, s.Terminated.ExitCode)
		}
		return ""
	}
	line := string(s.Phase)
	for _, c := range slices.Concat(s.InitContainerStatuses, s.ContainerStatuses, s.EphemeralContainerStatuses) {
		line += " " + c.Name + ":" + state(c.State)
		if last := state(c.LastTerminationState); last != "" {
			line += "<" + last
		}
		if c.RestartCount > 0 {
			line += fmt.Sprintf("#%d", c.RestartCount)
		}
		if c.Ready {
			line += "!"
		}
	}
	return line
}

// Each case is a history: the lines of seen are observed one after the other.
func TestCompute(t *testing.T) {
	crashLoop := map[string]pod.Waiting{"a": {Reason: "CrashLoopBackOff"}}
	cases := []struct {
		name    string
		pod     *v1.Pod
		seen    []string
		waiting map[string]pod.Waiting
		stopped bool
		want    string
	}{
		{"new pod", newPod("Always", "a"), []string{"none"}, nil, false, "Pending a:ContainerCreating"},
		{"new pod with init containers", newPod("Always", "ia"), []string{"none"}, nil, false, "Pending i:PodInitializing a:PodInitializing"},
		{"created container is not running", newPod("Always", "ia"), []string{"ready i:0 a:made"}, nil, false, "Pending i:Completed(0)! a:PodInitializing"},
		{"crashed container of a pod that restarts", newPod("Always", "a"), []string{"ready a:1"}, nil, false, "Running a:Error(1)"},
		{"crash loop shows the waiting reason", newPod("Always", "a"), []string{"ready a:1,2"}, crashLoop, false, "Running a:CrashLoopBackOff<Error(1)#1"},
		{"deleted pod shows no waiting reason", newPod("Always", "a", deleted), []string{"ready a:1,2"}, crashLoop, false, "Running a:Error(1)<Error(2)#1"},
		{"stopped pod shows no waiting reason", newPod("Always", "a"), []string{"notready a:1,2"}, crashLoop, true, "Failed a:Error(1)<Error(2)#1"},
		{"completed container shows no waiting reason", newPod("OnFailure", "ab"), []string{"ready a:0 b:run"}, crashLoop, false, "Running a:Completed(0) b:run!"},

		{"pod with a running sidecar has not ended", newPod("Never", "sa"), []string{"ready s:run a:0"}, nil, false, "Running s:run! a:Completed(0)"},
		{"exit code of a sidecar does not matter", newPod("Never", "sa"), []string{"ready s:run a:0", "ready s:137 a:0"}, nil, false, "Succeeded s:Error(137) a:Completed(0)"},
		{"restarting sidecar keeps the pod running", newPod("Never", "sa"), []string{"ready s:1 a:run"}, nil, false, "Running s:Error(1) a:run!"},
		{"failed init container without restart", newPod("Never", "isa"), []string{"ready i:1"}, nil, false, "Failed i:Error(1) s:PodInitializing a:PodInitializing"},
		{"failed init container that restarts", newPod("OnFailure", "ia"), []string{"ready i:1"}, nil, false, "Pending i:Error(1) a:PodInitializing"},
		{"removed init container of a running pod is completed", newPod("Always", "ia"), []string{"ready a:run"}, nil, false, "Running i:Completed(0)! a:run!"},

		{"removed running container counts a restart", newPod("Always", "a"), []string{"ready a:run", "ready"}, nil, false, "Running a:ContainerCreating<ContainerStatusUnknown(137)#1"},
		{"removed running container counts one restart only", newPod("Always", "a"), []string{"ready a:run", "ready", "ready"}, nil, false, "Running a:ContainerCreating<ContainerStatusUnknown(137)#1"},
		{"removed running container under Never fails the pod", newPod("Never", "a"), []string{"ready a:run", "ready"}, nil, false, "Failed a:ContainerCreating<ContainerStatusUnknown(137)#1"},
		{"removed completed container stays completed", newPod("OnFailure", "ab"), []string{"ready a:0 b:run", "ready b:run"}, nil, false, "Running a:Completed(0) b:run!"},
		{"removed crashed container shows the waiting reason", newPod("Always", "a"), []string{"ready a:1", "ready"}, crashLoop, false, "Running a:CrashLoopBackOff<Error(1)#1"},
		{"container in unknown state", newPod("Always", "a"), []string{"ready a:run", "ready a:gone"}, nil, false, "Running a:ContainerStatusUnknown(137)"},
		{"last termination of a removed instance is kept", newPod("Always", "a"), []string{"ready a:1", "ready a:run,1", "ready a:run"}, nil, false, "Running a:run<Error(1)#1!"},

		{"pod stopped before it ran fails", newPod("Always", "a"), []string{"none"}, nil, true, "Failed a:ContainerCreating"},
		{"stopped static pod has no terminal phase", newPod("Always", "a", func(p *v1.Pod) { p.Annotations = map[string]string{pod.AnnotationSource: "file"} }),
			[]string{"notready a:0"}, nil, true, "Running a:Completed(0)"},
		{"terminal phase does not change", newPod("Never", "a"), []string{"ready a:0", "ready a:run"}, nil, false, "Succeeded a:run!"},

		{"phase of the API server ends a running pod", newPod("Always", "a", withPhase(v1.PodFailed)), []string{"ready a:run"}, nil, false, "Failed a:run!"},
		{"phase of the API server wins over exit codes", newPod("Always", "a", withPhase(v1.PodSucceeded)), []string{"ready a:run", "notready a:137"}, nil, true, "Succeeded a:Error(137)"},
		{"phase of the API server that is not terminal is replaced", newPod("Always", "a", withPhase(v1.PodPending)), []string{"ready a:run"}, nil, false, "Running a:run!"},

		{"exit that restarts all containers", newPod("Never", "iab", restartAll), []string{"ready i:0 a:7 b:run"}, nil, false, "Running i:Completed(0)! a:Error(7) b:run!"},
		{"other containers are removed for a restart of all", newPod("Never", "iab", restartAll), []string{"ready i:0 a:7 b:run", "ready a:7"}, nil, false,
			"Running i:RestartingAllContainers<RestartingAllContainers(137)#1 a:Error(7) b:RestartingAllContainers<RestartingAllContainers(137)#1"},
		{"container that caused the restart of all is removed last", newPod("Never", "iab", restartAll), []string{"ready i:0 a:7 b:run", "ready a:7", "ready"}, nil, false,
			"Running i:PodInitializing<RestartingAllContainers(137)#1 a:RestartingAllContainers<RestartingAllContainers(137)#1 b:PodInitializing<RestartingAllContainers(137)#1"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			var status v1.PodStatus
			for _, line := range c.seen {
				status = Compute(Input{Pod: c.pod, Observed: observe(line), Previous: status, Waiting: c.waiting, Runtime: "model", Now: now, Stopped: c.stopped})
			}
			if got := show(status); got != c.want {
				t.Errorf("seen %s\n got %s\nwant %s", strings.Join(c.seen, ", then "), got, c.want)
			}
		})
	}
}

func TestConditions(t *testing.T) {
	was := func(types ...v1.PodConditionType) (all []v1.PodCondition) {
		for _, t := range types {
			all = append(all, v1.PodCondition{Type: t, Status: v1.ConditionTrue})
		}
		return all
	}
	gated := func(p *v1.Pod) { p.Spec.ReadinessGates = []v1.PodReadinessGate{{ConditionType: "example.com/gate"}} }
	cases := []struct {
		name     string
		pod      *v1.Pod
		previous []v1.PodCondition
		seen     string
		which    v1.PodConditionType
		want     string
	}{
		{"no sandbox", newPod("Always", "a"), nil, "none", v1.PodReadyToStartContainers, "False PodSandboxNotReady: no pod sandbox exists"},
		{"sandbox is not ready", newPod("Always", "a"), nil, "notready", v1.PodReadyToStartContainers, "False PodSandboxNotReady: pod sandbox is not ready"},
		{"sandbox is ready", newPod("Always", "a"), nil, "ready", v1.PodReadyToStartContainers, "True"},
		{"init containers incomplete", newPod("Always", "ia"), nil, "ready", v1.PodInitialized, "False ContainersNotInitialized: containers with incomplete status: [i]"},
		{"initialized pod stays initialized", newPod("Always", "ia"), was(v1.PodInitialized), "ready", v1.PodInitialized, "True"},
		{"readiness gate without condition", newPod("Always", "a", gated), nil, "ready a:run", v1.PodReady,
			`False ReadinessGatesNotReady: corresponding condition of pod readiness gate "example.com/gate" does not exist.`},
		{"readiness gate does not affect ContainersReady", newPod("Always", "a", gated), nil, "ready a:run", v1.ContainersReady, "True"},
		{"sidecar is not ready", newPod("Always", "sa"), nil, "ready s:1 a:run", v1.PodReady, "False ContainersNotReady: containers with unready status: [s]"},
		{"resize in progress is not carried over", newPod("Always", "a"), was(v1.PodResizeInProgress), "ready a:run", v1.PodResizeInProgress, ""},
		{"pending resize is not carried over", newPod("Always", "a"), was(v1.PodResizePending), "ready a:run", v1.PodResizePending, ""},
		{"disruption target is carried over", newPod("Always", "a"), was(v1.DisruptionTarget), "ready a:run", v1.DisruptionTarget, "True"},
		{"pod without rules has no AllContainersRestarting", newPod("Always", "a"), was(v1.AllContainersRestarting), "ready a:run", v1.AllContainersRestarting, ""},
		{"AllContainersRestarting is false", newPod("Always", "a", restartAll), nil, "ready a:run", v1.AllContainersRestarting, "False"},
		{"AllContainersRestarting is true after the exit", newPod("Always", "a", restartAll), nil, "ready a:7", v1.AllContainersRestarting, "True RestartAllContainersStarted: container exited with restart policy rule"},
		{"AllContainersRestarting ends", newPod("Always", "a", restartAll), was(v1.AllContainersRestarting), "ready", v1.AllContainersRestarting, "False"},
		{"AllContainersRestarting of a failed pod", newPod("Never", "a", restartAll), nil, "ready a:1", v1.AllContainersRestarting, "False PodFailed"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			// Both the API server and the previous status may show the earlier conditions.
			c.pod.Status.Conditions = c.previous
			s := Compute(Input{Pod: c.pod, Observed: observe(c.seen), Previous: v1.PodStatus{Conditions: c.previous}, Now: now})
			got := ""
			if found := find(s.Conditions, c.which); found != nil {
				got = strings.TrimSuffix(strings.TrimSpace(fmt.Sprintf("%s %s: %s", found.Status, found.Reason, found.Message)), ":")
				got = strings.TrimSpace(got)
			}
			if got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestReasonBelongsToPhase(t *testing.T) {
	p := newPod("Never", "a")
	waiting := v1.PodStatus{Phase: v1.PodPending, Reason: "Slow", Message: "very"}
	if s := Compute(Input{Pod: p, Observed: observe("ready a:run"), Previous: waiting, Now: now}); s.Reason != "" || s.Message != "" {
		t.Errorf("a running pod has the reason of a pending one: %s %s", s.Reason, s.Message)
	}
	evicted := v1.PodStatus{Phase: v1.PodFailed, Reason: "Evicted", Message: "memory"}
	if s := Compute(Input{Pod: p, Observed: observe("notready a:137"), Previous: evicted, Now: now}); s.Reason != "Evicted" || s.Message != "memory" {
		t.Errorf("an evicted pod has lost its reason: %q %q", s.Reason, s.Message)
	}
	p.Status = v1.PodStatus{Phase: v1.PodFailed, Reason: "Broken", Message: "by its operator"}
	if s := Compute(Input{Pod: p, Observed: observe("ready a:run"), Previous: v1.PodStatus{Phase: v1.PodRunning}, Now: now}); s.Reason != "Broken" || s.Message != "by its operator" {
		t.Errorf("a pod that another component failed has lost its reason: %q %q", s.Reason, s.Message)
	}
}

// The API server refuses a status with two IPs of one family.
func TestOneAddressPerFamily(t *testing.T) {
	o := &pod.Observed{Sandboxes: []pod.Sandbox{{Ready: true, IPs: []string{"10.0.0.1", "10.0.0.2", "fd00::1"}}}}
	for _, c := range []struct {
		ipv6First bool
		want      []v1.PodIP
	}{
		{false, []v1.PodIP{{IP: "10.0.0.1"}, {IP: "fd00::1"}}},
		{true, []v1.PodIP{{IP: "fd00::1"}, {IP: "10.0.0.1"}}},
	} {
		s := Compute(Input{Pod: newPod("Always", "a"), Observed: o, IPv6First: c.ipv6First, Now: now})
		if !slices.Equal(s.PodIPs, c.want) || s.PodIP != c.want[0].IP {
			t.Errorf("IPv6 first %v: %v and %v, want %v", c.ipv6First, s.PodIP, s.PodIPs, c.want)
		}
	}
}

func TestRecursiveReadOnly(t *testing.T) {
	const enabled, disabled, ifPossible = v1.RecursiveReadOnlyEnabled, v1.RecursiveReadOnlyDisabled, v1.RecursiveReadOnlyIfPossible
	for name, c := range map[string]struct {
		mode      v1.RecursiveReadOnlyMode
		can, seen bool
		want      v1.RecursiveReadOnlyMode
	}{
		"unset":                            {"", true, false, disabled},
		"disabled":                         {disabled, true, false, disabled},
		"if possible, runtime supports it": {ifPossible, true, false, enabled},
		"if possible, runtime does not support it": {ifPossible, false, false, disabled},
		"if possible, mount is recursive":          {ifPossible, false, true, enabled},
		"enabled, runtime supports it":             {enabled, true, false, enabled},
		"enabled, runtime does not support it":     {enabled, false, false, disabled},
		"enabled, mount is recursive":              {enabled, false, true, enabled},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPod("Always", "a")
			p.Spec.Containers[0].VolumeMounts = []v1.VolumeMount{{Name: "v", MountPath: "/v", ReadOnly: true}, {Name: "w", MountPath: "/w"}}
			if c.mode != "" {
				p.Spec.Containers[0].VolumeMounts[0].RecursiveReadOnly = &c.mode
			}
			o := observe("ready a:run")
			o.Containers[0].Mounts = []pod.Mount{{ContainerPath: "/v", ReadOnly: true, RecursiveReadOnly: c.seen}}
			got := Compute(Input{Pod: p, Observed: o, Now: now, RecursiveReadOnly: func() bool { return c.can }}).ContainerStatuses[0].VolumeMounts
			if *got[0].RecursiveReadOnly != c.want || got[1].RecursiveReadOnly != nil {
				t.Errorf("%+v, want %s", got, c.want)
			}
		})
	}
}
