package admit

import (
	"context"
	"errors"
	"fmt"

	v1 "k8s.io/api/core/v1"

	"swiftlet/internal/pod"
)

// ChecksConfig is what the checks know of this node beforehand.
type ChecksConfig struct {
	// Kernel is the kernel's version.
	Kernel string
	// UnsafeSysctls are allowed beside the safe ones: names, or prefixes that end in "*".
	UnsafeSysctls []string
	// Version is the Kubernetes version of this agent.
	Version string
	// AppArmor: the kernel enforces profiles.
	AppArmor bool
	// PodLevelResources: pods may have resources of their own.
	PodLevelResources bool
}

// ChecksDeps is what the checks ask while the agent runs.
type ChecksDeps struct {
	// Conditions are the pressure conditions that hold now.
	Conditions func() []v1.NodeConditionType
	// Allocate sets aside the CPUs, memory and devices that a pod asks for.
	Allocate func(context.Context, *v1.Pod) *pod.Rejection
	Node     *Node
	// Preempt makes room for critical pods; may be nil.
	Preempt Preempt
	// ShuttingDown reports whether the machine goes down.
	ShuttingDown func() bool
}

// NewChecks makes an Admitter of all checks, in the reference kubelet's order, which decides
// the reason that a pod with two faults is rejected for.
func NewChecks(cfg ChecksConfig, deps ChecksDeps) (*Admitter, error) {
	if deps.Conditions == nil || deps.Allocate == nil || deps.Node == nil || deps.ShuttingDown == nil {
		return nil, errors.New("new checks: conditions, allocate, node and shutting down are needed")
	}
	sysctls, err := Sysctls(cfg.Kernel, cfg.UnsafeSysctls)
	if err != nil {
		return nil, fmt.Errorf("new checks: %w", err)
	}
	declared, err := DeclaredFeatures(cfg.Version, func() (*v1.Node, error) { return deps.Node.deps.Own(), nil })
	if err != nil {
		return nil, fmt.Errorf("new checks: %w", err)
	}
	return New(
		Pressure(deps.Conditions),
		sysctls,
		func(p *v1.Pod, _ []*v1.Pod) *pod.Rejection { return deps.Allocate(context.Background(), p) },
		PodOS(),
		SupplementalGroups(deps.Node.strictGroups),
		Fit(deps.Node.Get, deps.Preempt),
		AppArmor(cfg.AppArmor),
		PodLevelResources(cfg.PodLevelResources),
		declared,
		Shutdown(deps.ShuttingDown),
	)
}
