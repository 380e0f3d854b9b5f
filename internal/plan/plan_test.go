package plan

import (
	"fmt"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"swiftlet/internal/pod"
)

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// A spec in a line: "policy init… | main… | ephemeral…". A name ending in ^ is a sidecar, in
// ? has a startup probe; @Never is its own policy, +7 restarts it on exit code 7, and *7
// restarts all containers on exit code 7.
func parsePod(spec string) *v1.Pod {
	policy, rest, _ := strings.Cut(spec, " ")
	lists := append(strings.Split(rest, "|"), "")
	p := &v1.Pod{}
	p.Spec.RestartPolicy = v1.RestartPolicy(policy)
	for _, w := range strings.Fields(lists[0]) {
		p.Spec.InitContainers = append(p.Spec.InitContainers, parseContainer(w))
	}
	for _, w := range strings.Fields(lists[1]) {
		p.Spec.Containers = append(p.Spec.Containers, parseContainer(w))
	}
	for _, w := range strings.Fields(lists[2]) {
		common := v1.EphemeralContainerCommon(parseContainer(w))
		p.Spec.EphemeralContainers = append(p.Spec.EphemeralContainers, v1.EphemeralContainer{EphemeralContainerCommon: common})
	}
	return p
}

func parseContainer(word string) v1.Container {
	c := v1.Container{Name: word[:1], Image: "image"}
	for word = word[1:]; word != ""; {
		mark := word[0]
		end := strings.IndexAny(word[1:], "^?@+*") + 1
		if end == 0 {
			end = len(word)
		}
		value := word[1:end]
		word = word[end:]
		policy, rule := v1.ContainerRestartPolicy(value), v1.ContainerRestartRule{}
		switch mark {
		case '^':
			policy = v1.ContainerRestartPolicyAlways
			c.RestartPolicy = &policy
		case '?':
			c.StartupProbe = &v1.Probe{}
		case '@':
			c.RestartPolicy = &policy
		case '+', '*':
			rule.ExitCodes = &v1.ContainerRestartRuleOnExitCodes{Operator: v1.ContainerRestartRuleOnExitCodesOpIn, Values: make([]int32, 1)}
			fmt.Sscan(value, &rule.ExitCodes.Values[0])
			rule.Action = map[byte]v1.ContainerRestartRuleAction{
				'+': v1.ContainerRestartRuleActionRestart, '*': v1.ContainerRestartRuleActionRestartAllContainers}[mark]
			c.RestartPolicyRules = append(c.RestartPolicyRules, rule)
		}
	}
	return c
}

// The observed state in a line: "sandbox name:state…"; the sandbox is ready, notready or none;
// a state is run, made, gone (unknown) or an exit code; a second state is the older
// instance; health may follow: run/live (liveness failed), run/start (startup failed),
// run/ok (startup passed), run/changed (other hash).
func parseObserved(seen string) (*pod.Observed, pod.HealthOf) {
	words := strings.Fields(seen)
	o := &pod.Observed{}
	health := map[string]pod.Health{}
	switch words[0] {
	case "ready", "notready":
		o.Sandboxes = []pod.Sandbox{{ID: "s", Ready: words[0] == "ready", IPs: []string{"10.0.0.1"}, CreatedAt: epoch}}
	}
	for _, w := range words[1:] {
		name, states, _ := strings.Cut(w, ":")
		instances := strings.Split(states, ",")
		for i, state := range instances {
			state, note, _ := strings.Cut(state, "/")
			c := pod.Container{ID: fmt.Sprintf("%s-%d", name, i), Name: name, Hash: "h",
				RestartCount: len(instances) - 1 - i, CreatedAt: epoch.Add(time.Hour - time.Duration(i)*time.Minute)}
			switch state {
			case "run":
				c.State = pod.Running
			case "made":
				c.State = pod.Created
			case "gone":
				c.State = pod.Unknown
			default:
				c.State = pod.Exited
				fmt.Sscan(state, &c.ExitCode)
			}
			switch note {
			case "live":
				health[c.ID] = pod.Health{Liveness: pod.Failed}
			case "start":
				health[c.ID] = pod.Health{Startup: pod.Failed}
			case "ok":
				health[c.ID] = pod.Health{Startup: pod.Passed}
			case "changed":
				c.Hash = "old"
			}
			o.Containers = append(o.Containers, c)
		}
	}
	return o, func(id string) pod.Health { return health[id] }
}

// describe formats actions as in the cases.
func describe(a Actions) string {
	var words []string
	if a.End {
		words = append(words, "end")
	}
	for _, c := range a.Reset {
		words = append(words, "reset:"+c.ID)
	}
	if a.NewSandbox {
		words = append(words, fmt.Sprintf("sandbox#%d", a.Attempt))
	}
	for _, k := range a.Kill {
		words = append(words, "kill:"+k.Container.Name)
	}
	for _, s := range a.Start {
		verb := "start:"
		if s.Adopt != "" {
			verb = "adopt:"
		}
		word := verb + s.Container.Name
		if n := s.RestartCount; n > 0 {
			word += fmt.Sprintf("#%d", n)
		}
		words = append(words, word)
	}
	return strings.Join(words, " ")
}

func compute(spec, seen string) Actions {
	o, health := parseObserved(seen)
	return Compute(Input{Pod: parsePod(spec), Observed: o, Health: health, Hash: func(*v1.Container) string { return "h" }})
}

func TestCompute(t *testing.T) {
	cases := []struct{ name, spec, seen, want string }{
		{"new pod", "Always | a b", "none", "sandbox#0 start:a start:b"},
		{"running container needs nothing", "Always | a", "ready a:run", ""},
		{"missing container starts", "Always | a b", "ready a:run", "start:b"},
		{"restarts after a crash", "Always | a", "ready a:7", "start:a#1"},
		{"restarts after second crash", "Always | a", "ready a:7,7", "start:a#2"},
		{"restarts after success under Always", "Always | a", "ready a:0", "start:a#1"},
		{"does not restart after success under OnFailure", "OnFailure | a b", "ready a:0 b:1", "start:b#1"},
		{"does not restart under Never", "Never | a b", "ready a:1 b:run", ""},
		{"created container is adopted", "Always | a", "ready a:made", "adopt:a"},
		{"adopted container keeps its restart count", "Always | a", "ready a:made,7", "adopt:a#1"},
		{"created container with another hash is replaced", "Always | a", "ready a:made/changed", "start:a#1"},
		{"failed liveness probe restarts", "Always | a", "ready a:run/live", "kill:a start:a#1"},
		{"failed liveness probe under Never kills", "Never | a", "ready a:run/live", "kill:a"},
		{"restart rules do not apply to a failed liveness probe", "Never | a@Never+137", "ready a:run/live", "kill:a"},
		{"restart rule matches the exit code of a killed container", "Never | a@Never+137", "ready a:137", "start:a#1"},
		{"failed startup probe restarts", "Always | a", "ready a:run/start", "kill:a start:a#1"},
		{"changed image restarts under Never", "Never | a", "ready a:run/changed", "kill:a start:a#1"},
		{"container in unknown state is killed", "Always | a", "ready a:gone", "kill:a"},
		{"running instance that was replaced is killed", "Always | a", "ready a:run,run", "kill:a"},

		{"container policy Never overrides pod policy Always", "Always | a@Never b", "ready a:1 b:run", ""},
		{"container policy OnFailure overrides pod policy Never", "Never | a@OnFailure b", "ready a:1 b:run", "start:a#1"},
		{"restart rule overrides container policy", "Never | a@Never+7 b", "ready a:7 b:run", "start:a#1"},
		{"restart rule that does not match", "Never | a@Never+7 b", "ready a:8 b:run", ""},

		{"pod ends with its main containers", "Never | a b", "ready a:0 b:1", "end"},
		{"pod ends while sidecars run", "Never s^ | a", "ready s:run a:0", "end"},
		{"sidecar does not restart after the pod has ended", "OnFailure s^ | a", "ready s:1 a:0", "end"},
		{"ephemeral container does not start after the pod has ended", "Never | a | e", "ready a:0", "end"},
		{"pod ends after a failed init container", "Never s^ i | a", "ready s:run i:1", "end"},
		{"pod ends after an init container with policy Never failed", "Always i@Never | a", "ready i:1", "end"},

		{"running container without sandbox is killed first", "Always | a b", "notready a:run b:1", "kill:a"},
		{"new sandbox after all containers have exited", "Always | a b", "notready a:137 b:1", "sandbox#1 start:a#1 start:b#1"},
		{"sandbox died under Never", "Never | a", "notready a:137", "end"},
		{"sandbox died under OnFailure with one container completed", "OnFailure | a b", "notready a:0 b:1", "sandbox#1 start:b#1"},
		{"sandbox died under Never before any container ran", "Never | a", "notready", "sandbox#1 start:a"},
		{"sandbox died under Never before all containers ran", "Never | a b", "notready a:0", "sandbox#1 start:b"},

		{"first init container starts with the sandbox", "Always i j | a", "none", "sandbox#0 start:i"},
		{"second init container starts after the first", "Always i j | a", "ready i:0", "start:j"},
		{"main containers wait for a running init container", "Always i j | a", "ready i:0 j:run", ""},
		{"main containers start after the init containers", "Always i j | a", "ready i:0 j:0", "start:a"},
		{"last init container with an instance is the current one", "Always i j k | a", "ready j:0", "start:k"},
		{"failed init container restarts", "Always i | a", "ready i:1", "start:i#1"},
		{"successful init container does not restart despite its rules", "Always i@Never+0 | a", "ready i:0", "start:a"},
		{"init containers do not restart with a main container", "Always i | a", "ready i:0 a:1", "start:a#1"},
		{"removed init containers do not restart", "Always i | a", "ready a:made", "adopt:a"},
		{"init containers run again in a new sandbox", "Always i | a", "notready i:0 a:1", "sandbox#1 start:i#1"},
		{"running init container with a changed image is kept", "Always i | a", "ready i:run/changed", ""},
		{"init container in unknown state is killed", "Always i | a", "ready i:gone", "kill:i"},

		{"main container starts after a running sidecar", "Always s^ | a", "ready s:run", "start:a"},
		{"main container waits for the sidecar's startup probe", "Always s^? | a", "ready s:run", ""},
		{"main container starts after the sidecar's startup probe passed", "Always s^? | a", "ready s:run/ok", "start:a"},
		{"sidecar restarts after its startup probe failed", "Always s^? | a", "ready s:run/start", "kill:s start:s#1"},
		{"sidecar restarts under Never", "Never s^ | a", "ready s:0 a:run", "start:s#1"},
		{"sidecar restarts before the next init container starts", "Never s^ i | a", "ready s:1", "start:s#1"},
		{"sidecar restarts while a later init container runs", "Never s^ i | a", "ready s:1 i:run", "start:s#1"},
		{"sidecar restarts while the next init container starts", "Never s^ i j | a", "ready s:1 i:0", "start:s#1 start:j"},
		{"changed sidecar does not delay the main container", "Always s^ | a", "ready s:run/changed", "kill:s start:s#1 start:a"},

		{"ephemeral container starts before init containers complete", "Always i | a | e", "ready i:run", "start:e"},
		{"ephemeral container does not restart", "Always | a | e", "ready a:run e:0", ""},

		{"exit that restarts all removes its cause last", "Never s^ i | a@Never*7 b", "ready s:run i:0 a:7 b:run", "reset:b-0 reset:s-0 reset:i-0 reset:a-0"},
		{"restart of all removes old instances", "Always | a@Never*7 b", "ready a:7 b:run,1", "reset:b-0 reset:b-1 reset:a-0"},
		{"init container's exit restarts all", "Never i@Never*7 | a", "ready i:7", "reset:i-0"},
		{"sidecar's exit restarts all", "Never s^*7 | a", "ready s:7 a:run", "reset:a-0 reset:s-0"},
		{"exit code 0 restarts all by rule", "Never i@Never*0 | a", "ready i:0", "reset:i-0"},
		{"interrupted reset continues", "Never i | a@Never*7 b", "ready a:7", "reset:a-0"},
		{"restart of all keeps ephemeral containers", "Never | a@Never*7 | e", "ready a:7 e:run", "reset:a-0"},
		{"restart of all without a sandbox", "Never | a@Never*7", "notready a:7", "reset:a-0"},
		{"sidecar's exit does not restart a pod that has ended", "Never s^*7 | a", "ready s:7 a:0", "end"},
		{"exit code without a rule restarts nothing", "Never | a@Never*7 b", "ready a:8 b:run", ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if got := describe(compute(c.spec, c.seen)); got != c.want {
				t.Errorf("%s, seen %s\n got %s\nwant %s", c.spec, c.seen, got, c.want)
			}
		})
	}
}

// The plan for containers that the runtime has no more follows from their status.
func TestRemovedContainers(t *testing.T) {
	ended := func(code int32) v1.ContainerState {
		return v1.ContainerState{Terminated: &v1.ContainerStateTerminated{ExitCode: code}}
	}
	waiting := v1.ContainerState{Waiting: &v1.ContainerStateWaiting{}}
	lost := v1.ContainerState{Terminated: &v1.ContainerStateTerminated{ExitCode: 137}}
	reset := v1.ContainerState{Terminated: &v1.ContainerStateTerminated{ExitCode: 137, Reason: pod.ReasonRestartingAll}}
	cases := []struct {
		name, spec, want string
		a                v1.ContainerStatus
	}{
		{"completed container does not restart", "OnFailure | a b", "", v1.ContainerStatus{ContainerID: "c://1", State: ended(0)}},
		{"failed container restarts", "OnFailure | a b", "start:a#3", v1.ContainerStatus{ContainerID: "c://1", State: ended(1), RestartCount: 2}},
		{"failed container does not restart under Never", "Never | a b", "", v1.ContainerStatus{ContainerID: "c://1", State: ended(1), RestartCount: 2}},
		{"waiting container keeps its restart count", "Always | a b", "start:a#3", v1.ContainerStatus{State: waiting, LastTerminationState: lost, RestartCount: 3}},
		{"waiting container that ran does not restart under Never", "Never | a b", "", v1.ContainerStatus{State: waiting, LastTerminationState: lost, RestartCount: 3}},
		{"container removed for a restart of all starts under Never", "Never | a b", "start:a#3", v1.ContainerStatus{State: waiting, LastTerminationState: reset, RestartCount: 3}},
		{"container that never ran starts under Never", "Never | a b", "start:a", v1.ContainerStatus{State: waiting}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			c.a.Name = "a"
			o, health := parseObserved("ready b:run")
			got := describe(Compute(Input{Pod: parsePod(c.spec), Observed: o, Health: health, Hash: func(*v1.Container) string { return "h" },
				Status: &v1.PodStatus{ContainerStatuses: []v1.ContainerStatus{c.a}}}))
			if got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}
