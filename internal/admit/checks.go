package admit

import (
	"context"
	"fmt"

	v1 "k8s.io/api/core/v1"

	"swiftlet/internal/pod"
	"swiftlet/internal/require"
)

// ChecksConfig configures the checks.
type ChecksConfig struct {
	// Kernel is the kernel version.
	Kernel string
	// UnsafeSysctls are allowed in addition to the safe ones: names, or prefixes that end in
	// "*".
	UnsafeSysctls []string
	// Version is the kubelet's Kubernetes version.
	Version string
	// AppArmor is enabled in the kernel.
	AppArmor bool
	// PodLevelResources is the feature gate.
	PodLevelResources bool
}

// ChecksDeps are the dependencies of the checks.
type ChecksDeps struct {
	// Pressures lists the node's current pressure conditions.
	Pressures func() []v1.NodeConditionType
	// Allocate allocates exclusive CPUs, memory and devices to a pod.
	Allocate func(context.Context, *v1.Pod) *pod.Rejection
	Node     *Node
	// Preempt stops other pods for a critical one; may be nil.
	Preempt Preempt
	// ShuttingDown reports whether the machine is shutting down.
	ShuttingDown func() bool
}

// NewChecks returns an Admitter of all checks. They are in the reference kubelet's order, so
// that a pod that fails several is rejected for the same reason.
func NewChecks(cfg ChecksConfig, deps ChecksDeps) (*Admitter, error) {
	if err := require.Set("new admission checks", map[string]any{
		"Pressures": deps.Pressures, "Allocate": deps.Allocate, "Node": deps.Node, "ShuttingDown": deps.ShuttingDown,
	}); err != nil {
		return nil, err
	}
	sysctls, err := Sysctls(cfg.Kernel, cfg.UnsafeSysctls)
	if err != nil {
		return nil, fmt.Errorf("new admission checks: %w", err)
	}
	declared, err := DeclaredFeatures(cfg.Version, func() (*v1.Node, error) { return deps.Node.deps.Local(), nil })
	if err != nil {
		return nil, fmt.Errorf("new admission checks: %w", err)
	}
	return New(
		Pressure(deps.Pressures),
		sysctls,
		func(p *v1.Pod, _ []*v1.Pod) *pod.Rejection { return deps.Allocate(context.Background(), p) },
		PodOS(),
		SupplementalGroups(deps.Node.supportsStrictGroups),
		Fit(deps.Node.Get, deps.Preempt),
		AppArmor(cfg.AppArmor),
		PodLevelResources(cfg.PodLevelResources),
		declared,
		Shutdown(deps.ShuttingDown),
	)
}
