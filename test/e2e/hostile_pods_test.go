package e2e

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/ptr"

	"swiftlet/test/bed"
	"swiftlet/test/trust/tally"
)

// hostileConfig bounds the number of processes of a pod, as an operator who runs strangers' pods does.
const hostileConfig = "podPidsLimit: 64\ncontainerLogMaxSize: 1Mi\n"

// hostileLimit is for all pods at once at full size on a machine with two cores.
const hostileLimit = 5 * time.Minute

// maxHostileRSS bounds the agent's memory, in KiB. An agent without such pods uses a third of it.
const maxHostileRSS = 256 << 10

// TestHostilePods runs pods that use every limit, flood the node, and replace files of theirs on the node
// by links, fifos and devices. Meanwhile other pods start and stop, the node stays ready, and the agent's
// memory is bounded. Afterwards all pods can be deleted, and nothing is left. SWIFTLET_HOSTILE_PODS=all
// runs all pods at full size, SWIFTLET_HOSTILE_ONLY only those whose name contains it; the default is a few
// small ones.
func TestHostilePods(t *testing.T) {
	if kubelet != bed.Ours {
		t.Skip("tests only our kubelet")
	}
	t.Parallel()
	all := os.Getenv("SWIFTLET_HOSTILE_PODS") == "all"
	node := configuredNode(t, "hostile", hostileConfig)
	in := namespace(t)
	counts := tally.New(t, "hostile-pods")
	before, hostFilesChanged := podResources(t, node), watchHostFiles(t, node)
	conditions := record[corev1.Node](t, listWatch{
		list: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			return client().CoreV1().Nodes().List(ctx, o)
		},
		watch: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			return client().CoreV1().Nodes().Watch(ctx, o)
		},
	}, node.Name())

	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	tried := make(chan error, 1)
	go func() { tried <- tryPods(ctx, in, node.Name()) }()
	runHostile(t, in, node, counts, all)
	stop()
	if err := <-tried; err != nil {
		t.Errorf("another pod: %v", err)
	}
	for _, version := range conditions() {
		if why := nodeReady(corev1.ConditionTrue)(version); why != "" {
			t.Errorf("while hostile pods ran: %s", why)
			break
		}
	}
	if peak := peakRSS(t, node); peak > maxHostileRSS {
		t.Errorf("the agent used %d KiB of memory, want at most %d", peak, maxHostileRSS)
	}
	if missing := hostFilesChanged(); missing != "" {
		t.Error(missing)
	}
	deleteHostile(t, in, node, before, counts)
}

// runHostile runs the pods, some at a time, and counts those that behave as expected.
func runHostile(t *testing.T, in string, node *bed.Box, counts *tally.Tally, all bool) {
	t.Helper()
	limit := make(chan struct{}, 6) // at a time: the tests share two cores
	var running sync.WaitGroup
	for _, h := range hostilePods(all) {
		if !all && !h.short {
			continue
		}
		if only := os.Getenv("SWIFTLET_HOSTILE_ONLY"); !strings.Contains(h.name, only) {
			continue
		}
		limit <- struct{}{}
		running.Go(func() {
			defer func() { <-limit }()
			err := h.run(t.Context(), in, node)
			counts.Fault(err == nil)
			if err != nil {
				t.Errorf("%s: %v", h.name, err)
			}
		})
	}
	running.Wait()
}

// run creates the pod and waits for what is expected of it.
func (h hostilePod) run(ctx context.Context, in string, node *bed.Box) error {
	pod := h.make(node.Name())
	if h.static {
		return runHostileStatic(ctx, node, pod)
	}
	if _, err := client().CoreV1().Pods(in).Create(ctx, pod, metav1.CreateOptions{}); err != nil {
		return err
	}
	check := ready
	if h.expect != nil {
		check = h.expect
	}
	made, err := awaitErr(ctx, pods(in), pod.Name, hostileLimit, check)
	if err != nil {
		return err
	}
	if h.then != nil {
		return h.then(ctx, in, node, made)
	}
	return nil
}

// tryPods starts and removes a pod repeatedly until ctx is done. Each must start and end in time.
func tryPods(ctx context.Context, in, node string) error {
	for n := 0; ctx.Err() == nil; n++ {
		pod := sleeper(fmt.Sprintf("other-%d", n), node)
		if _, err := client().CoreV1().Pods(in).Create(ctx, pod, metav1.CreateOptions{}); err != nil && ctx.Err() == nil {
			return err
		}
		if _, err := awaitErr(ctx, pods(in), pod.Name, 2*timeout, ready); err != nil && ctx.Err() == nil {
			return fmt.Errorf("start %s: %w", pod.Name, err)
		}
		if err := client().CoreV1().Pods(in).Delete(ctx, pod.Name, metav1.DeleteOptions{}); err != nil && ctx.Err() == nil {
			return err
		}
		if _, err := awaitErr(ctx, pods(in), pod.Name, 2*timeout, gone); err != nil && ctx.Err() == nil {
			return fmt.Errorf("remove %s: %w", pod.Name, err)
		}
	}
	return nil
}

// peakRSS returns the most memory that the agent has used, in KiB.
func peakRSS(t *testing.T, node *bed.Box) int {
	t.Helper()
	out, err := node.Exec(t.Context(), "sh", "-c", `awk '/^VmHWM/ {print $2}' /proc/$(pidof kubelet)/status`)
	if err != nil {
		t.Fatal(err)
	}
	peak, err := strconv.Atoi(strings.TrimSpace(out))
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("the agent used at most %d KiB", peak)
	return peak
}

// deleteHostile deletes all pods. They must be gone soon, with everything of them.
func deleteHostile(t *testing.T, in string, node *bed.Box, before map[string][]string, counts *tally.Tally) {
	t.Helper()
	now := metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](1)}
	if err := client().CoreV1().Pods(in).DeleteCollection(t.Context(), now, metav1.ListOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, hostileLimit, func() string { return listPods(t, in) })
	left := func() string { return formatResources(newResources(before, podResources(t, node))) }
	if what := waitFor(2*time.Minute, left); what != "" {
		counts.Leaks(strings.Count(what, "\n") + 1)
		t.Errorf("left on the node:\n%s", what)
	}
}
