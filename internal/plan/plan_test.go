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

// What was seen, in a line: "sandbox name:state…"; the sandbox is ready, notready or none;
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

// describe renders actions as the cases write them.
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
		{"a new pod", "Always | a b", "none", "sandbox#0 start:a start:b"},
		{"all is well", "Always | a", "ready a:run", ""},
		{"its containers are due", "Always | a b", "ready a:run", "start:b"},
		{"a crash is restarted", "Always | a", "ready a:7", "start:a#1"},
		{"and again", "Always | a", "ready a:7,7", "start:a#2"},
		{"success is restarted under Always", "Always | a", "ready a:0", "start:a#1"},
		{"success is final under OnFailure", "OnFailure | a b", "ready a:0 b:1", "start:b#1"},
		{"everything is final under Never", "Never | a b", "ready a:1 b:run", ""},
		{"a created container is adopted", "Always | a", "ready a:made", "adopt:a"},
		{"a created container of a crash keeps its count", "Always | a", "ready a:made,7", "adopt:a#1"},
		{"one of another image is made anew", "Always | a", "ready a:made/changed", "start:a#1"},
		{"a failed liveness probe", "Always | a", "ready a:run/live", "kill:a start:a#1"},
		{"a failed liveness probe under Never", "Never | a", "ready a:run/live", "kill:a"},
		{"rules have no say before there is an exit code", "Never | a@Never+137", "ready a:run/live", "kill:a"},
		{"but then they have", "Never | a@Never+137", "ready a:137", "start:a#1"},
		{"a failed startup probe", "Always | a", "ready a:run/start", "kill:a start:a#1"},
		{"a changed image is run even under Never", "Never | a", "ready a:run/changed", "kill:a start:a#1"},
		{"a state the runtime cannot name", "Always | a", "ready a:gone", "kill:a"},
		{"an instance that was replaced but runs", "Always | a", "ready a:run,run", "kill:a"},

		{"a container's own policy comes before the pod's", "Always | a@Never b", "ready a:1 b:run", ""},
		{"also where it asks for more", "Never | a@OnFailure b", "ready a:1 b:run", "start:a#1"},
		{"and its rules before that", "Never | a@Never+7 b", "ready a:7 b:run", "start:a#1"},
		{"which match or do not", "Never | a@Never+7 b", "ready a:8 b:run", ""},

		{"the pod is done when its main containers are", "Never | a b", "ready a:0 b:1", "end"},
		{"though sidecars run", "Never s^ | a", "ready s:run a:0", "end"},
		{"and are not run again then", "OnFailure s^ | a", "ready s:1 a:0", "end"},
		{"nor are ephemeral containers started", "Never | a | e", "ready a:0", "end"},
		{"or when an init container failed for good", "Never s^ i | a", "ready s:run i:1", "end"},
		{"or by its own policy", "Always i@Never | a", "ready i:1", "end"},

		{"what runs without a sandbox ends first", "Always | a b", "notready a:run b:1", "kill:a"},
		{"then the sandbox is made anew", "Always | a b", "notready a:137 b:1", "sandbox#1 start:a#1 start:b#1"},
		{"the sandbox died under Never", "Never | a", "notready a:137", "end"},
		{"the sandbox died under OnFailure with one done", "OnFailure | a b", "notready a:0 b:1", "sandbox#1 start:b#1"},
		{"the sandbox died before anything ran under Never", "Never | a", "notready", "sandbox#1 start:a"},
		{"the sandbox died before all ran under Never", "Never | a b", "notready a:0", "sandbox#1 start:b"},

		{"init containers go first", "Always i j | a", "none", "sandbox#0 start:i"},
		{"one after the other", "Always i j | a", "ready i:0", "start:j"},
		{"and the main ones wait", "Always i j | a", "ready i:0 j:run", ""},
		{"until they are done", "Always i j | a", "ready i:0 j:0", "start:a"},
		{"the last one known tells how far the pod has come", "Always i j k | a", "ready j:0", "start:k"},
		{"a failed init container is tried again", "Always i | a", "ready i:1", "start:i#1"},
		{"a successful one is not, whatever its rules", "Always i@Never+0 | a", "ready i:0", "start:a"},
		{"init containers are not run again", "Always i | a", "ready i:0 a:1", "start:a#1"},
		{"not even if they are forgotten", "Always i | a", "ready a:made", "adopt:a"},
		{"unless the sandbox is new", "Always i | a", "notready i:0 a:1", "sandbox#1 start:i#1"},
		{"a changed image waits for the init container's end", "Always i | a", "ready i:run/changed", ""},
		{"an init container that the runtime lost", "Always i | a", "ready i:gone", "kill:i"},

		{"a sidecar starts, then the next", "Always s^ | a", "ready s:run", "start:a"},
		{"a sidecar with a startup probe holds up the next", "Always s^? | a", "ready s:run", ""},
		{"until the probe passes", "Always s^? | a", "ready s:run/ok", "start:a"},
		{"or gives up", "Always s^? | a", "ready s:run/start", "kill:s start:s#1"},
		{"a sidecar is restarted whatever the pod's policy", "Never s^ | a", "ready s:0 a:run", "start:s#1"},
		{"and before the main ones begin", "Never s^ i | a", "ready s:1", "start:s#1"},
		{"and while a later one runs", "Never s^ i | a", "ready s:1 i:run", "start:s#1"},
		{"and beside the next", "Never s^ i j | a", "ready s:1 i:0", "start:s#1 start:j"},
		{"a changed sidecar does not hold up the others", "Always s^ | a", "ready s:run/changed", "kill:s start:s#1 start:a"},

		{"ephemeral containers start at once", "Always i | a | e", "ready i:run", "start:e"},
		{"and only once", "Always | a | e", "ready a:run e:0", ""},

		{"one exit restarts all containers, the cause last", "Never s^ i | a@Never*7 b", "ready s:run i:0 a:7 b:run", "reset:b-0 reset:s-0 reset:i-0 reset:a-0"},
		{"with all their instances", "Always | a@Never*7 b", "ready a:7 b:run,1", "reset:b-0 reset:b-1 reset:a-0"},
		{"an init container may ask for it", "Never i@Never*7 | a", "ready i:7", "reset:i-0"},
		{"and a sidecar", "Never s^*7 | a", "ready s:7 a:run", "reset:a-0 reset:s-0"},
		{"even after success", "Never i@Never*0 | a", "ready i:0", "reset:i-0"},
		{"a reset that was broken off is taken up again", "Never i | a@Never*7 b", "ready a:7", "reset:a-0"},
		{"ephemeral containers are left alone", "Never | a@Never*7 | e", "ready a:7 e:run", "reset:a-0"},
		{"also without a sandbox", "Never | a@Never*7", "notready a:7", "reset:a-0"},
		{"a pod that is done is not run anew by a sidecar", "Never s^*7 | a", "ready s:7 a:0", "end"},
		{"other codes restart nothing", "Never | a@Never*7 b", "ready a:8 b:run", ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if got := describe(compute(c.spec, c.seen)); got != c.want {
				t.Errorf("%s, seen %s\n got %s\nwant %s", c.spec, c.seen, got, c.want)
			}
		})
	}
}

// A status speaks for containers that the runtime has forgotten.
func TestForgottenContainers(t *testing.T) {
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
		{"one that is done stays done", "OnFailure | a b", "", v1.ContainerStatus{ContainerID: "c://1", State: ended(0)}},
		{"one that failed is run again", "OnFailure | a b", "start:a#3", v1.ContainerStatus{ContainerID: "c://1", State: ended(1), RestartCount: 2}},
		{"but not under Never", "Never | a b", "", v1.ContainerStatus{ContainerID: "c://1", State: ended(1), RestartCount: 2}},
		{"one that was lost is counted already", "Always | a b", "start:a#3", v1.ContainerStatus{State: waiting, LastTerminationState: lost, RestartCount: 3}},
		{"and not run again under Never", "Never | a b", "", v1.ContainerStatus{State: waiting, LastTerminationState: lost, RestartCount: 3}},
		{"unless all were to be run anew", "Never | a b", "start:a#3", v1.ContainerStatus{State: waiting, LastTerminationState: reset, RestartCount: 3}},
		{"one that never ran is started", "Never | a b", "start:a", v1.ContainerStatus{State: waiting}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			c.a.Name = "a"
			o, health := parseObserved("ready b:run")
			got := describe(Compute(Input{Pod: parsePod(c.spec), Observed: o, Health: health, Hash: func(*v1.Container) string { return "h" },
				Shown: &v1.PodStatus{ContainerStatuses: []v1.ContainerStatus{c.a}}}))
			if got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}
