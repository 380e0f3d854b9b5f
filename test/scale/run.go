package scale

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"swiftlet/bench"
)

// Spec is one run: nodes of one kind in a cluster of their own.
type Spec struct {
	Kind        string `json:"kind"`
	Nodes       int    `json:"nodes"`
	PodsPerNode int    `json:"podsPerNode"`
	// Storms are run after everything else.
	Storms bool `json:"storms"`
}

// Run is what a run has measured.
type Run struct {
	Spec
	Seconds float64 `json:"seconds"`
	// Values are by the ID of a row.
	Values map[string]float64 `json:"values"`
	// Requests are by phase and kind of request: per node and minute when idle, per pod when pods are
	// started, per node in storms.
	Requests map[string]map[string]float64 `json:"requests"`
}

// Options are those of all runs.
type Options struct {
	Programs Programs
	Idle     time.Duration // length of the idle phase
	Outage   time.Duration // how long the API server is away
	Resets   bool          // connections are reset then, not refused
	Limit    time.Duration // of each phase
	Logs     string        // directory for the logs of each run; empty: they are removed
}

// session is a run in progress.
type session struct {
	*cluster
	spec     Spec
	options  Options
	fleet    *fleet
	progress io.Writer
	began    time.Time
	stopped  []period
	result   *Run
	// idleBytes is the rate of the idle phase, per second.
	idleBytes float64
}

// Measure runs one cluster. It returns what was measured also if it fails.
func Measure(ctx context.Context, spec Spec, options Options, progress io.Writer) (_ *Run, err error) {
	cluster, err := startCluster(ctx, progress)
	if err != nil {
		return nil, err
	}
	s := &session{
		cluster: cluster, spec: spec, options: options, progress: progress, began: time.Now(),
		result: &Run{Spec: spec, Values: map[string]float64{}, Requests: map[string]map[string]float64{}},
	}
	defer func() { err = errors.Join(err, s.saveLogs(), cluster.close()) }()
	phases := []func(context.Context) error{s.start, s.startPods, s.idle}
	if spec.Storms {
		phases = append(phases, s.changeConfigMap, s.restartAgents, s.outage)
	}
	defer func() {
		if s.fleet != nil {
			err = errors.Join(err, s.fleet.stop())
		}
	}()
	for _, phase := range phases {
		if err := phase(ctx); err != nil {
			return s.result, errors.Join(err, s.fleet.failure())
		}
	}
	s.result.Seconds = time.Since(s.began).Seconds()
	return s.result, s.leases()
}

// saveLogs copies the logs of all programs and the audit log.
func (s *session) saveLogs() error {
	if s.options.Logs == "" {
		return nil
	}
	dir := filepath.Join(s.options.Logs, fmt.Sprintf("%s-%d", strings.ReplaceAll(s.spec.Kind, " ", "-"), s.spec.Nodes))
	if err := errors.Join(os.RemoveAll(dir), os.CopyFS(dir, os.DirFS(s.bed.Logs()))); err != nil {
		return fmt.Errorf("save logs: %w", err)
	}
	text, err := os.ReadFile(s.api.AuditLog())
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "audit.log"), text, 0o644)
	}
	if err != nil {
		return fmt.Errorf("save logs: %w", err)
	}
	return nil
}

func (s *session) say(format string, args ...any) {
	fmt.Fprintf(s.progress, "%s %d: %s (%.0f s)\n", s.spec.Kind, s.spec.Nodes, fmt.Sprintf(format, args...), time.Since(s.began).Seconds())
}

func (s *session) set(row string, value float64) { s.result.Values[row] = value }

// perNode sets a row to a value divided by the number of nodes.
func (s *session) perNode(row string, value float64) { s.set(row, value/float64(s.spec.Nodes)) }

// start starts all nodes and waits until they are ready.
func (s *session) start(ctx context.Context) (err error) {
	began := time.Now()
	if s.fleet, err = s.startFleet(ctx, s.options.Programs, s.spec.Kind, s.spec.Nodes); err != nil {
		return err
	}
	if err := s.awaitAll(ctx, "nodes", s.nodes.ready, s.spec.Nodes); err != nil {
		return err
	}
	s.set("start_seconds", time.Since(began).Seconds())
	settled, err := s.settle(ctx, began)
	if err != nil {
		return err
	}
	all := s.audit.between(began, settled)
	s.perNode("start_requests", float64(len(all)))
	s.perNode("start_bytes", float64(s.relay.bytes()))
	s.result.Requests["start"] = all.byKind(s.spec.Nodes)
	s.say("nodes are ready")
	return nil
}

// awaitAll waits until a number is reached.
func (s *session) awaitAll(ctx context.Context, what string, count func() int, want int) error {
	next := time.Now()
	var failed error
	err := await(ctx, s.options.Limit, what, func() bool {
		if time.Now().After(next) {
			next = time.Now().Add(15 * time.Second)
			if failed = errors.Join(s.fleet.check(), s.audit.read()); failed != nil { // the log is long: read it in parts
				return true
			}
			s.say("%d of %d %s", count(), want, what)
		}
		return count() >= want
	})
	return errors.Join(err, failed)
}

// settle waits until no node has sent anything but heartbeats for a while, and returns when the last such
// request was. It gives up after a minute: then something is sent all the time, which the idle phase shows.
func (s *session) settle(ctx context.Context, from time.Time) (time.Time, error) {
	const quiet = 5 * time.Second
	for deadline := time.Now().Add(time.Minute); ; {
		if err := s.audit.read(); err != nil {
			return time.Time{}, err
		}
		now := time.Now()
		last := s.audit.between(from, now).withoutHeartbeats().last()
		if now.Sub(last) > quiet && now.Sub(from) > quiet || now.After(deadline) {
			return now, nil
		}
		if err := pause(ctx, time.Second); err != nil {
			return time.Time{}, err
		}
	}
}

// settleTime is the time from the start of nodes until they can be idle.
const settleTime = 45 * time.Second

// idle measures nodes whose pods all run.
func (s *session) idle(ctx context.Context) error {
	// Some requests are sent half a minute after the start of a kubelet.
	if err := pause(ctx, time.Until(s.began.Add(settleTime))); err != nil {
		return err
	}
	watches, err := s.openWatches(ctx)
	if err != nil {
		return err
	}
	s.perNode("watches", float64(watches-s.ownWatches))
	use, err := s.measureUse()
	if err != nil {
		return err
	}
	bytes, from := s.relay.bytes(), time.Now()
	if err := pause(ctx, s.options.Idle); err != nil {
		return err
	}
	to := time.Now()
	bytes = s.relay.bytes() - bytes
	minutes, seconds := to.Sub(from).Minutes(), to.Sub(from).Seconds()
	if err := s.audit.read(); err != nil {
		return err
	}
	all := s.audit.between(from, to)
	s.idleBytes = float64(bytes) / seconds
	s.perNode("idle_requests", float64(len(all))/minutes)
	s.perNode("idle_bytes", float64(bytes)/minutes)
	s.result.Requests["idle"] = all.byKind(s.spec.Nodes)
	used, err := use()
	if err != nil {
		return err
	}
	s.set("idle_api_cpu", used.api.Seconds()/seconds)
	s.perNode("idle_node_cpu", used.nodes.Seconds()/seconds)
	s.finishPods()
	s.say("idle measured")
	return s.memory()
}

// memory measures nodes and API server when all pods run.
func (s *session) memory() error {
	nodes, err := processMemory(s.fleet.pids())
	if err != nil {
		return err
	}
	s.perNode("node_pss", float64(nodes.pss))
	s.perNode("node_anonymous", float64(nodes.anonymous))
	pid, err := s.api.APIServerPID()
	if err != nil {
		return err
	}
	api, err := processMemory([]int{pid})
	if err != nil {
		return err
	}
	s.set("api_memory", float64(api.pss))
	return nil
}

// use is CPU time.
type use struct{ api, nodes time.Duration }

// measureUse returns a function that returns the CPU time used since.
func (s *session) measureUse() (func() (use, error), error) {
	before, err := s.readUse()
	if err != nil {
		return nil, err
	}
	return func() (use, error) {
		now, err := s.readUse()
		return use{api: now.api - before.api, nodes: now.nodes - before.nodes}, err
	}, nil
}

func (s *session) readUse() (now use, err error) {
	pid, err := s.api.APIServerPID()
	if err != nil {
		return now, err
	}
	if now.api, err = bench.ProcessCPU(pid); err != nil {
		return now, err
	}
	now.nodes, err = s.fleet.cpu()
	return now, err
}

// leases evaluates the renewals of the whole run.
func (s *session) leases() error {
	end := time.Now()
	if err := s.audit.read(); err != nil {
		return err
	}
	all := s.audit.between(s.began, end)
	late := lateness(all, end, s.stopped)
	s.set("lease_p99", percentile(late, 99).Seconds())
	s.set("lease_max", percentile(late, 100).Seconds())
	failed := all.where(request.failed)
	s.set("failed_requests", float64(len(failed)))
	s.result.Requests["failed"] = failed.byKind(1)
	return nil
}
