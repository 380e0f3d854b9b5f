package swap

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"swiftlet/internal/config"
	"swiftlet/internal/cri"
	"swiftlet/internal/desired"
	"swiftlet/internal/plan"
	"swiftlet/internal/pod"
	"swiftlet/internal/runtime"
)

// disturbed lists the pods with containers that a swap would stop, and counts those that run. It asks
// package plan, which decides that for the kubelet, too.
func disturbed(ctx context.Context, cfg *config.Config) (changes []string, running int, err error) {
	wanted, err := desiredPods(ctx, cfg)
	if err != nil {
		return nil, 0, err
	}
	observed, err := observedPods(ctx, cfg)
	if err != nil {
		return nil, 0, err
	}
	for _, o := range observed {
		if len(o.Live()) == 0 {
			continue
		}
		running++
		p, ok := wanted.Get(o.UID)
		switch {
		case !ok:
			changes = append(changes, fmt.Sprintf("%s/%s: would be stopped: neither the API server nor a manifest has it", o.Namespace, o.Name))
		case p.DeletionTimestamp == nil && !pod.IsTerminal(p.Status.Phase):
			changes = append(changes, stops(p, wanted, &o)...)
		}
	}
	slices.Sort(changes)
	return changes, running, nil
}

// stops lists the running containers of a pod that the kubelet would stop.
func stops(p *v1.Pod, wanted *desired.Pods, observed *pod.Observed) (changes []string) {
	status := &p.Status
	if mirror := wanted.MirrorOf(p); mirror != nil {
		status = &mirror.Status
	}
	actions := plan.Compute(plan.Input{Pod: p, Observed: observed, Hash: runtime.ContainerHash, Status: status})
	for _, k := range actions.Kill {
		changes = append(changes, fmt.Sprintf("%s/%s: container %s would be restarted: %s", p.Namespace, p.Name, k.Container.Name, reasons[k.Reason]))
	}
	if len(actions.Reset) > 0 {
		changes = append(changes, fmt.Sprintf("%s/%s: all containers would be restarted: a container's exit requires it", p.Namespace, p.Name))
	}
	return changes
}

var reasons = map[plan.KillReason]string{
	plan.Changed:      "the hash of its name and image differs from the one that it was created with",
	plan.NoSandbox:    "its pod has no usable sandbox",
	plan.UnknownState: "the runtime does not know its state",
}

// observedPods reads all pods of the runtime. It does not subscribe to events: the running kubelet may
// need them.
func observedPods(ctx context.Context, cfg *config.Config) ([]pod.Observed, error) {
	client, err := cri.Dial(cri.ConfigFrom(&cfg.Kubelet))
	if err != nil {
		return nil, err
	}
	defer client.Close()
	sandboxes, err := client.ListPodSandboxes(ctx, &runtimeapi.PodSandboxFilter{})
	if err != nil {
		return nil, err
	}
	containers, err := client.ListContainers(ctx, &runtimeapi.ContainerFilter{})
	if err != nil {
		return nil, err
	}
	pods := map[types.UID]*pod.Observed{}
	of := func(labels map[string]string) *pod.Observed {
		ref, ok := cri.RefFrom(labels)
		if !ok {
			return nil
		}
		if pods[ref.UID] == nil {
			pods[ref.UID] = &pod.Observed{Ref: ref, At: time.Now()}
		}
		return pods[ref.UID]
	}
	for _, s := range sandboxes {
		status, err := client.PodSandboxStatus(ctx, s.Id, false)
		if o := of(s.Labels); o != nil && err == nil {
			o.Sandboxes = append(o.Sandboxes, cri.SandboxFrom(status.Status))
		} else if err != nil && !cri.IsNotFound(err) {
			return nil, err
		}
	}
	for _, c := range containers {
		status, err := client.ContainerStatus(ctx, c.Id, false)
		if o := of(c.Labels); o != nil && err == nil {
			container := cri.ContainerFrom(status.Status)
			container.SandboxID = c.PodSandboxId
			o.Containers = append(o.Containers, container)
		} else if err != nil && !cri.IsNotFound(err) {
			return nil, err
		}
	}
	var all []pod.Observed
	for _, o := range pods {
		o.Sort()
		all = append(all, *o)
	}
	slices.SortFunc(all, func(a, b pod.Observed) int {
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
	})
	return all, nil
}
