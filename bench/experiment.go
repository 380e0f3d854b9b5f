package bench

import (
	"context"
	"regexp"
	"time"
)

// phase says in which rounds an experiment runs.
type phase int

const (
	everyRound phase = iota
	firstRound       // its values do not vary
	afterwards       // once after all rounds: it disturbs others
)

// experiment measures some rows on one subject.
type experiment struct {
	name  string
	rows  []string
	usual time.Duration // for one subject, on an idle machine with two cores
	bare  bool          // bare CRI calls can do it
	quick bool          // part of the quick run
	phase phase
	run   func(context.Context, *trial) error
}

// experiments is the table of all, in the order in which a round runs them.
var experiments = []experiment{
	{name: "size of the binary", rows: []string{"binary"}, usual: time.Second, quick: true, phase: firstRound, run: binarySize},
	{name: "idle without pods", rows: idleRows(0), usual: 30 * time.Second, run: idleEmpty},
	{name: "process start", rows: []string{"first_pod"}, usual: 6 * time.Second, run: firstPod},
	{name: "one pod", rows: []string{"start_one", "delete_one"}, usual: 12 * time.Second, bare: true, quick: true, run: onePod},
	{name: "shapes of pods", rows: []string{"start_containers_5", "start_init_3"}, usual: 12 * time.Second, bare: true, run: podShapes},
	{name: "crash", rows: []string{"crash"}, usual: 10 * time.Second, bare: true, quick: true, run: crashes},
	{name: "exec", rows: []string{"exec"}, usual: 4 * time.Second, bare: true, quick: true, run: execs},
	{name: "static pod", rows: []string{"static"}, usual: 10 * time.Second, run: staticPods},
	{name: "readiness", rows: []string{"readiness"}, usual: 12 * time.Second, quick: true, run: readinessFlips},
	{name: "ConfigMap", rows: []string{"configmap"}, usual: 45 * time.Second, run: configMapChanges},
	{name: "60 pods", rows: append(idleRows(60), "start_60", "start_60_machine_cpu", "start_60_agent_cpu", "start_60_api_cpu", "delete_60"),
		usual: 40 * time.Second, bare: true, quick: true, run: pods60},
	{name: "200 pods", rows: append(append(append(idleRows(200), scrapeRows()...), restartRows...),
		"start_200", "start_200_machine_cpu", "start_200_agent_cpu", "start_200_api_cpu", "delete_200"),
		usual: 110 * time.Second, bare: true, run: pods200},
	{name: "exec probes", rows: []string{"probes_exec_agent_cpu", "probes_exec_runtime_cpu", "probes_exec_rate", "probes_exec_agent_each", "probes_exec_runtime_each"},
		usual: 50 * time.Second, run: execProbes},
	{name: "HTTP probes", rows: []string{"probes_http_agent_cpu", "probes_http_runtime_cpu", "probes_http_rate"},
		usual: 45 * time.Second, run: httpProbes},
	{name: "log rotation", rows: []string{"log_rate", "log_lost", "log_agent_cpu"}, usual: 25 * time.Second, run: logRotation},
	{name: "number of calls", rows: []string{"cri_calls_idle", "cri_calls_start", "cri_calls_delete", "api_calls_idle", "api_calls_start", "api_calls_delete"},
		usual: 90 * time.Second, phase: afterwards, run: numberOfCalls},
}

// selectExperiments returns the experiments of a run that measure a row whose ID matches.
func selectExperiments(want *regexp.Regexp, quick bool) []experiment {
	var selected []experiment
	for _, e := range experiments {
		if quick && !e.quick {
			continue
		}
		for _, row := range e.rows {
			if want.MatchString(row) {
				selected = append(selected, e)
				break
			}
		}
	}
	return selected
}

// trial is one execution of an experiment.
type trial struct {
	cluster *cluster
	subject subject
	round   int
	quick   bool
	smoke   bool
	samples *recorder
}

func (t *trial) record(row string, value float64) {
	t.samples.add(row, t.subject.name(), t.round, value)
}

// repeat is how often something short is repeated in a round.
func (t *trial) repeat(full, quick int) int {
	if t.quick {
		return quick
	}
	return full
}

// number is how many pods an experiment has.
func (t *trial) number(full int) int {
	if t.smoke {
		return max(full/20, 2)
	}
	return full
}

// window is how long something continuous is measured.
func (t *trial) window(full time.Duration) time.Duration {
	if t.smoke {
		return full / 5
	}
	return full
}

// kubelet is the subject of experiments that bare calls cannot do.
func (t *trial) kubelet() *kubelet { return t.subject.(*kubelet) }
