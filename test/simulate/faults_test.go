package simulate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"syscall"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"swiftlet/internal/cri"
	"swiftlet/test/fakeapi"
	"swiftlet/test/fakecri"
)

// profile says how bad the world of a seed is.
type profile struct {
	runtimeFaults, apiFaults, kernelFaults float64 // probability per call
	slowCalls                              float64 // probability that a call takes seconds
	kills                                  float64 // probability per call that the agent is killed at it
	longestDowntime                        time.Duration
	duration                               time.Duration // of the part with faults
	operations                             int
}

func newProfile(r *rand.Rand) profile {
	rates := []float64{0, 0, 0.005, 0.02, 0.1}
	return profile{
		runtimeFaults: pick(r, rates...), apiFaults: pick(r, rates...), kernelFaults: pick(r, rates...),
		slowCalls: pick(r, 0, 0, 0.01, 0.05), kills: pick(r, 0, 0, 0.002, 0.01),
		longestDowntime: pick(r, time.Second, 30*time.Second, 10*time.Minute),
		duration:        between(r, 5*time.Minute, 40*time.Minute), operations: 5 + r.IntN(25),
	}
}

// outcome is what happens to a call.
type outcome int

const (
	executed outcome = iota
	failed           // it is not executed
	lost             // it is executed, and its response is lost
	hung             // it is not executed, and never answered
)

// decide returns what happens to a call, and how long it takes.
func (n *node) decide(name string, rate float64) (outcome, time.Duration, *rand.Rand) {
	r := n.roll(name)
	took := between(r, 200*time.Microsecond, 5*time.Millisecond)
	n.mu.Lock()
	on := n.faults
	n.mu.Unlock()
	if !on {
		return executed, took, r
	}
	if often(r, n.profile.slowCalls) {
		took = between(r, 100*time.Millisecond, 20*time.Second)
	}
	if !often(r, rate) {
		return executed, took, r
	}
	n.countFault()
	return pick(r, failed, failed, lost, lost, hung), took, r
}

// killedAt kills the agent at a call, by chance.
func (n *node) killedAt(r *rand.Rand, name string) bool {
	n.mu.Lock()
	current := n.current
	on := n.faults
	n.mu.Unlock()
	if n.crash.reached(name) && current != nil {
		current.kill("at " + name)
		return true
	}
	if !on || current == nil || !often(r, n.profile.kills) {
		return false
	}
	n.mu.Lock()
	n.kills++
	n.injected++
	n.mu.Unlock()
	current.kill("at " + name)
	return true
}

// interceptRuntime delays calls of the runtime, makes them fail, and kills the agent at them.
func (n *node) interceptRuntime(ctx context.Context, call fakecri.Call, act func() (any, error)) (any, error) {
	name := "cri " + call.Method + " " + n.world.subject(call)
	what, took, r := n.decide(name, n.profile.runtimeFaults)
	if took > 500*time.Millisecond { // a probe may time out
		n.world.faultAt(call)
	}
	if !n.sleep(ctx, took+n.world.stopTime(call)) {
		n.add("%s: canceled", name)
		return nil, ctx.Err()
	}
	if n.killedAt(r, name) {
		if n.crash.executes(r) { // the runtime had received it
			_, err := n.execute(call, act)
			n.add("%s: executed without a caller: %v", name, err)
		}
		return nil, errKilled
	}
	switch what {
	case failed:
		n.world.faultAt(call)
		n.add("%s: FAULT not executed", name)
		return nil, status.Error(pick(r, codes.Unknown, codes.Unavailable, codes.DeadlineExceeded, codes.Internal), "simulated failure")
	case hung:
		n.world.faultAt(call)
		n.add("%s: FAULT hangs", name)
		n.sleep(ctx, 5*time.Minute) // a hook has no deadline
		return nil, errors.New("simulated hang")
	}
	answer, err := n.execute(call, act)
	if what == lost {
		n.world.faultAt(call)
		n.add("%s: FAULT response lost (%v)", name, err)
		return nil, status.Error(pick(r, codes.Unavailable, codes.DeadlineExceeded, codes.Unknown), "simulated loss of the response")
	}
	n.traceCall(call, name, err)
	return answer, err
}

// traceCall adds calls that change something, or fail.
func (n *node) traceCall(call fakecri.Call, name string, err error) {
	switch call.Method {
	case "Version", "Status", "ListPodSandbox", "ListContainers", "PodSandboxStatus", "ContainerStatus", "ImageStatus", "ListImages", "ImageFsInfo", "RuntimeConfig":
		if err == nil && *seedFlag < 0 {
			return
		}
	}
	n.add("%s: %v", name, err)
}

func (n *node) execute(call fakecri.Call, act func() (any, error)) (any, error) {
	n.world.before(call)
	answer, err := act()
	n.world.after(call, answer, err)
	return answer, err
}

// sleep reports whether the time has passed before ctx was done.
func (n *node) sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// interceptAPI does the same for requests to the API server.
func (n *node) interceptAPI(ctx context.Context, call fakeapi.Call, act func() (*http.Response, error)) (*http.Response, error) {
	name := "api " + call.String()
	what, took, r := n.decide(name, n.profile.apiFaults)
	if !n.sleep(ctx, took) {
		return nil, ctx.Err()
	}
	from, _ := ctx.Value(runKey{}).(*run)
	if n.killedAt(r, name) {
		if n.crash.executes(r) && call.Verb != "watch" {
			_, _ = act()
			n.add("%s: executed without a caller", name)
		}
		return nil, errKilled
	}
	if from != nil && from.isKilled() {
		return nil, errKilled
	}
	n.mu.Lock()
	outage := n.outage
	n.mu.Unlock()
	if outage {
		return nil, fmt.Errorf("dial: %w", syscall.ECONNREFUSED)
	}
	switch what {
	case failed:
		n.add("%s: FAULT not executed", name)
		return pick(r,
			func() (*http.Response, error) { return nil, syscall.ECONNREFUSED },
			func() (*http.Response, error) {
				return fakeapi.Fail(http.StatusInternalServerError, metav1.StatusReasonInternalError, "simulated"), nil
			},
			func() (*http.Response, error) {
				return fakeapi.Fail(http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable, "simulated"), nil
			},
			func() (*http.Response, error) {
				return fakeapi.Fail(http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests, "simulated"), nil
			})()
	case hung:
		n.add("%s: FAULT hangs", name)
		n.sleep(ctx, 15*time.Minute) // then TCP gives up
		return nil, syscall.ETIMEDOUT
	}
	n.checkDeletion(call)
	answer, err := act()
	if what == lost && call.Verb != "watch" {
		n.add("%s: FAULT response lost", name)
		return nil, io.ErrUnexpectedEOF
	}
	if call.Verb != "get" && call.Resource != "leases" && call.Resource != "events" || *seedFlag >= 0 {
		code := 0
		if answer != nil {
			code = answer.StatusCode
		}
		n.add("%s: %d %v", name, code, err)
	}
	return answer, err
}

// podOf returns the UID and container of a request, as far as it has them.
func podOf(labels map[string]string) key {
	return key{labels[cri.LabelPodUID], labels["io.kubernetes.container.name"]}
}
