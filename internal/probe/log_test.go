package probe

import (
	"log/slog"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"

	"swiftlet/internal/klogfmt"
	"swiftlet/internal/pod"
)

func TestLog(t *testing.T) {
	p := &v1.Pod{}
	p.Namespace, p.Name, p.UID = "ns", "web", "u"
	const of = ` pod="ns/web" podUID="u" containerName="c"`
	cases := map[string]struct {
		kind      kind
		early     bool
		outcome   Outcome
		verbosity int32
		want      string
	}{
		"failed":                     {liveness, false, Outcome{Result: pod.Failed, Output: "no"}, 1, `"Probe failed" probeType="Liveness"` + of + ` probeResult="failure" output="no"`},
		"failed, verbosity 0":        {liveness, false, Outcome{Result: pod.Failed}, 0, ""},
		"failed early":               {readiness, true, Outcome{Result: pod.Failed}, 4, ""},
		"unknown":                    {startup, false, Outcome{Result: pod.ProbeUnknown, Output: "no"}, 1, `"Probe errored" probeType="Startup"` + of + ` probeResult="unknown" err="no"`},
		"passed early":               {readiness, true, Outcome{Result: pod.Passed, Output: "yes"}, 3, `"Probe succeeded" probeType="Readiness"` + of},
		"passed, with a warning":     {readiness, false, Outcome{Result: pod.Passed, Output: "yes", Warning: true}, 3, `"Probe succeeded with a warning" probeType="Readiness"` + of + ` output="yes"`},
		"passed, but verbosity is 2": {readiness, false, Outcome{Result: pod.Passed}, 2, ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			var out strings.Builder
			prober, run := loggingProber(&out, c.verbosity), probeRun{state: &state{key: key{kind: c.kind}}, target: Target{Pod: p, Container: &v1.Container{Name: "c"}}, early: c.early}
			prober.logOutcome(run, c.outcome)
			if _, got, _ := strings.Cut(strings.TrimSuffix(out.String(), "\n"), "] "); got != c.want {
				t.Errorf("logged %s, want %s", got, c.want)
			}
		})
	}
	for k, statuses := range map[kind]map[pod.Result]string{
		startup:   {pod.Passed: "started", pod.Failed: "unhealthy"},
		liveness:  {pod.Failed: "unhealthy"},
		readiness: {pod.Passed: "ready", pod.Failed: "not ready"},
	} {
		for result, status := range statuses {
			var out strings.Builder
			loggingProber(&out, 1).logChange(probeRun{state: &state{key: key{kind: k}}, target: Target{Pod: p}}, result)
			want := `"SyncLoop (probe)" probe="` + strings.ToLower(k.String()) + `" status="` + status + `" pod="ns/web"`
			if _, got, _ := strings.Cut(strings.TrimSuffix(out.String(), "\n"), "] "); got != want {
				t.Errorf("logged %s, want %s", got, want)
			}
		}
	}
}

func loggingProber(out *strings.Builder, level int32) *Prober {
	verbosity := klogfmt.NewVerbosity()
	verbosity.Set(level)
	return &Prober{deps: Deps{Log: slog.New(klogfmt.New(klogfmt.Config{Verbosity: verbosity, Info: out, Error: out}))}}
}
