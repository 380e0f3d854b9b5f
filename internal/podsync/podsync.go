package podsync

import (
	"errors"
	"fmt"
	"time"

	"swiftlet/internal/backoff"
	"swiftlet/internal/pod"
	"swiftlet/internal/require"
)

// Config is the configuration of the steps.
type Config struct {
	// RuntimeName is the scheme of container ids, such as "containerd".
	RuntimeName string
	// CrashBackoff delays the restarts of a crashing container: the first is at once, the next after
	// CrashBackoff.First.
	CrashBackoff backoff.Backoff
	// MaxDeadPerContainer is how many dead instances of each container are kept, all if negative.
	MaxDeadPerContainer int
	// MinDeadAge is the age below which a dead container is not removed.
	MinDeadAge time.Duration
	// MaxDead is how many dead containers the node keeps in total, all if negative. The newest
	// instance of a container of a running pod is kept in any case, for its log.
	MaxDead int
	// Fields drops what a pod's status shows only while a feature gate is on.
	Fields pod.GatedFields
	// IPv6First: IPv6 is the primary family of the node and its pods.
	IPv6First bool
}

// Steps is what the steps of all pods share. It is safe for concurrent use.
type Steps struct {
	cfg  Config
	deps Deps
}

// PodSteps runs the steps of one pod. It belongs to the pod's worker and is not safe for
// concurrent use.
type PodSteps struct {
	*Steps
	memory
}

// NewPod returns the steps of one pod, with an empty memory.
func (s *Steps) NewPod() *PodSteps { return &PodSteps{Steps: s, memory: newMemory(s.cfg.CrashBackoff)} }

// New validates and starts nothing.
func New(cfg Config, deps Deps) (*Steps, error) {
	if err := require.Set("new pod steps", map[string]any{
		"RuntimeName": cfg.RuntimeName, "Runtime": deps.Runtime, "Logs": deps.Logs, "Observer": deps.Observer,
		"Images": deps.Images, "Volumes": deps.Volumes, "Cgroups": deps.Cgroups, "Status": deps.Status,
		"Objects": deps.Objects, "Sources": deps.Sources, "Probes": deps.Probes,
		"Node.Handler": deps.Node.Handler, "Node.Allocatable": deps.Node.Allocatable,
		"Node.Network": deps.Node.Network, "Node.HostIPs": deps.Node.HostIPs,
		"Events": deps.Events, "Clock": deps.Clock, "Log": deps.Log,
	}); err != nil {
		return nil, err
	}
	if cfg.CrashBackoff.First <= 0 || cfg.CrashBackoff.Longest < cfg.CrashBackoff.First {
		return nil, fmt.Errorf("new pod steps: back-off from %s to %s does not rise", cfg.CrashBackoff.First, cfg.CrashBackoff.Longest)
	}
	if r := deps.Resizing; (r.Actual == nil) != (r.Usage == nil) || (r.Actual == nil) != (r.Allocated == nil) {
		return nil, errors.New("new pod steps: Resizing must have all of Allocated, Actual and Usage, or none")
	}
	if deps.Resources == nil {
		deps.Resources = noResources{}
	}
	return &Steps{cfg: cfg, deps: deps}, nil
}
