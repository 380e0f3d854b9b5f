package plan

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"swiftlet/internal/pod"
)

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// A spec in a line: "policy init… | main…"; a name ending in ^ is a sidecar, one ending in
// ? has a startup probe.
func parsePod(spec string) *v1.Pod {
	policy, rest, _ := strings.Cut(spec, " ")
	inits, mains, _ := strings.Cut(rest, "|")
	p := &v1.Pod{}
	p.Spec.RestartPolicy = v1.RestartPolicy(policy)
	always := v1.ContainerRestartPolicyAlways
	parse := func(word string) v1.Container {
		c := v1.Container{Name: strings.TrimRight(word, "^?"), Image: "image"}
		if strings.Contains(word, "^") {
			c.RestartPolicy = &always
		}
		if strings.Contains(word, "?") {
			c.StartupProbe = &v1.Probe{}
		}
		return c
	}
	for _, w := range strings.Fields(inits) {
		p.Spec.InitContainers = append(p.Spec.InitContainers, parse(w))
	}
	for _, w := range strings.Fields(mains) {
		p.Spec.Containers = append(p.Spec.Containers, parse(w))
	}
	return p
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
		if n := s.RestartCount(); n > 0 {
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
		{"a failed liveness probe", "Always | a", "ready a:run/live", "kill:a start:a#1"},
		{"a failed liveness probe under Never", "Never | a", "ready a:run/live", "kill:a"},
		{"a failed startup probe", "Always | a", "ready a:run/start", "kill:a start:a#1"},
		{"a changed image is run even under Never", "Never | a", "ready a:run/changed", "kill:a start:a#1"},
		{"a state the runtime cannot name", "Always | a", "ready a:gone", "kill:a"},

		{"the sandbox died", "Always | a b", "notready a:run b:1", "sandbox#1 kill:a start:a#1 start:b#1"},
		{"the sandbox died under Never", "Never | a", "notready a:137", ""},
		{"the sandbox died under OnFailure with one done", "OnFailure | a b", "notready a:0 b:1", "sandbox#1 start:b#1"},
		{"the sandbox died before anything ran under Never", "Never | a", "notready", "sandbox#1 start:a"},

		{"init containers go first", "Always i j | a", "none", "sandbox#0 start:i"},
		{"one after the other", "Always i j | a", "ready i:0", "start:j"},
		{"and the main ones wait", "Always i j | a", "ready i:0 j:run", ""},
		{"until they are done", "Always i j | a", "ready i:0 j:0", "start:a"},
		{"a failed init container is tried again", "Always i | a", "ready i:1", "start:i#1"},
		{"but not under Never", "Never i | a", "ready i:1", ""},
		{"init containers are not run again", "Always i | a", "ready i:0 a:1", "start:a#1"},
		{"unless the sandbox is new", "Always i | a", "notready i:0 a:1", "sandbox#1 start:i#1"},

		{"a sidecar starts, then the next", "Always s^ | a", "ready s:run", "start:a"},
		{"a sidecar with a startup probe holds up the next", "Always s^? | a", "ready s:run", ""},
		{"until the probe passes", "Always s^? | a", "ready s:run/ok", "start:a"},
		{"a sidecar is restarted whatever the pod's policy", "Never s^ | a", "ready s:0 a:run", "start:s#1"},
		{"and before the main ones begin", "Never s^ i | a", "ready s:1", "start:s#1"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if got := describe(compute(c.spec, c.seen)); got != c.want {
				t.Errorf("%s, seen %s\n got %s\nwant %s", c.spec, c.seen, got, c.want)
			}
		})
	}
}

// Every combination of policy, container kinds and states keeps these promises.
func TestPromises(t *testing.T) {
	states := []string{"", "run", "made", "gone", "0", "1", "run/live", "run/changed", "1,1"}
	for _, policy := range []string{"Always", "OnFailure", "Never"} {
		for _, inits := range []string{"", "i", "s^", "i s^", "s^ i", "s^? i"} {
			for _, sandbox := range []string{"none", "ready", "notready"} {
				for _, i := range states {
					for _, s := range states {
						for _, a := range states {
							for _, b := range states {
								seen := sandbox
								for name, state := range map[string]string{"i": i, "s": s, "a": a, "b": b} {
									if state != "" && (strings.Contains(inits, name) || name == "a" || name == "b") {
										seen += " " + name + ":" + state
									}
								}
								checkPromises(t, policy+" "+inits+" | a b", seen)
							}
						}
					}
				}
			}
		}
	}
}

func checkPromises(t *testing.T, spec, seen string) {
	t.Helper()
	in := Input{Pod: parsePod(spec)}
	in.Observed, _ = parseObserved(seen)
	a := compute(spec, seen)
	killed := func(name string) bool {
		return slices.ContainsFunc(a.Kill, func(k Kill) bool { return k.Container.Name == name })
	}
	names := map[string]bool{}
	inits := 0
	for _, s := range a.Start {
		if names[s.Container.Name] {
			t.Fatalf("%s, seen %s: %s is started twice", spec, seen, s.Container.Name)
		}
		names[s.Container.Name] = true
		latest := in.Observed.Latest(s.Container.Name)
		if latest != nil && latest.State == pod.Running && !killed(s.Container.Name) {
			t.Fatalf("%s, seen %s: %s is started while it runs", spec, seen, s.Container.Name)
		}
		if s.Kind == pod.Init && !pod.IsSidecar(s.Container) {
			inits++
		}
	}
	if inits > 1 {
		t.Fatalf("%s, seen %s: two init containers at once: %s", spec, seen, describe(a))
	}
	if inits == 1 && slices.ContainsFunc(a.Start, func(s Start) bool { return s.Kind == pod.Main }) {
		t.Fatalf("%s, seen %s: a main container beside an init container: %s", spec, seen, describe(a))
	}
	if strings.HasPrefix(seen, "ready") && a.NewSandbox {
		t.Fatalf("%s, seen %s: a good sandbox is thrown away", spec, seen)
	}
	if !strings.HasPrefix(seen, "ready") && len(a.Start) > 0 && !a.NewSandbox {
		t.Fatalf("%s, seen %s: started without a sandbox: %s", spec, seen, describe(a))
	}
}
