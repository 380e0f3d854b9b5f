package podsync

import (
	"errors"
	"time"

	"swiftlet/internal/pod"
)

// Config is what holds for all pods.
type Config struct {
	// RuntimeName is the scheme of container ids, such as "containerd".
	RuntimeName string
	// Backoff is the curve by which a crashing container is held back.
	Backoff Backoff
	// KeepDead is how many dead instances of each container are kept; all where it is
	// negative.
	KeepDead int
	// KeepFor is the age below which a dead container is kept.
	KeepFor time.Duration
	// KeepOnNode is how many dead containers the node keeps in all, if it is not negative.
	// It does not cost a container of a pod that lives its last instance, whose log is still
	// read.
	KeepOnNode int
	// Fields drops what a pod's status shows only while a feature gate is on.
	Fields pod.GatedFields
	// IPv6First: the node is of IPv6 first, and so are its pods.
	IPv6First bool
}

// Steps holds what the steps of all pods share. It is safe for concurrent use.
type Steps struct {
	cfg  Config
	deps Deps
}

// PodSteps performs the steps of one pod's life. It belongs to the pod's worker and is not
// safe for concurrent use.
type PodSteps struct {
	*Steps
	memory
}

// NewPod returns the steps of one pod, of which nothing is remembered yet.
func (s *Steps) NewPod() *PodSteps { return &PodSteps{Steps: s, memory: newMemory(s.cfg.Backoff)} }

// New validates and starts nothing.
func New(cfg Config, deps Deps) (*Steps, error) {
	if cfg.RuntimeName == "" || cfg.Backoff.First <= 0 || cfg.Backoff.Longest < cfg.Backoff.First {
		return nil, errors.New("podsync: runtime name and a rising back-off are needed")
	}
	if deps.Runtime == nil || deps.Logs == nil || deps.Observer == nil || deps.Images == nil || deps.Volumes == nil ||
		deps.Cgroups == nil || deps.Status == nil || deps.Objects == nil || deps.Sources == nil || deps.Probes == nil {
		return nil, errors.New("podsync: a collaborator is missing")
	}
	if r := deps.Resizing; (r.Actual == nil) != (r.Usage == nil) || (r.Actual == nil) != (r.Given == nil) {
		return nil, errors.New("podsync: to resize pods, what they are given, have and use is needed")
	}
	if deps.Node.Handler == nil || deps.Node.Allocatable == nil {
		return nil, errors.New("podsync: runtime classes and allocatable resources are needed")
	}
	if deps.Node.Network == nil || deps.Node.HostIPs == nil || deps.Events == nil || deps.Clock == nil || deps.Log == nil {
		return nil, errors.New("podsync: network, host addresses, events, clock and log are needed")
	}
	if deps.Resources == nil {
		deps.Resources = nothing{}
	}
	return &Steps{cfg: cfg, deps: deps}, nil
}
