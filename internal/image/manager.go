package image

import (
	"log/slog"

	v1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"

	"swiftlet/internal/config"
	"swiftlet/internal/meter"
	"swiftlet/internal/pod"
	"swiftlet/internal/why"
)

// Runtime is all that images are asked of; cri.Client is one.
type Runtime interface {
	Service
	Store
	Containers
}

// ManagerDeps are what images are pulled and removed with.
type ManagerDeps struct {
	Runtime Runtime
	// Observed lists the pods that the runtime has.
	Observed func() []pod.Observed
	Secrets  Secrets
	Plugins  CredentialPlugins // may be nil
	Events   pod.Events
	// Node is what events about garbage collection are about.
	Node   *v1.ObjectReference
	Meters Meters
	// Why records which pods wait for the pulls of others; may be nil.
	Why *why.Tracker
	// Collected counts the images that were removed, by the reason; may be nil.
	Collected meter.CountOf
	Clock     clock.WithDelayedExecution
	Log       *slog.Logger
}

// Manager pulls images, and removes those that are not used any more.
type Manager struct {
	Puller    *Puller
	Collector *Collector
}

// NewManager makes both, with what finds credentials for pulls. It starts nothing.
func NewManager(cfg *config.Config, deps ManagerDeps) (m Manager, err error) {
	m.Collector, err = NewCollector(CollectorConfigFrom(&cfg.Kubelet), CollectorDeps{
		Images: deps.Runtime, InUse: InUse(deps.Runtime, deps.Observed),
		Events: deps.Events, Node: deps.Node, Collected: deps.Collected, Clock: deps.Clock, Log: deps.Log,
	})
	if err != nil {
		return m, err
	}
	credentials, err := NewCredentialFinder(cfg.Flags.RootDir,
		FinderDeps{Secrets: deps.Secrets, Plugins: deps.Plugins, Events: deps.Events, Log: deps.Log})
	if err != nil {
		return m, err
	}
	m.Puller, err = New(ConfigFrom(cfg), Deps{
		Images: deps.Runtime, Credentials: credentials.Find, OnUse: m.Collector.MarkUsed, OnPulled: m.Collector.ImagePulled,
		Events: deps.Events, Meters: deps.Meters, Why: deps.Why, Clock: deps.Clock, Log: deps.Log,
	})
	m.Collector.OnCollected(m.Puller.PruneRecords)
	return m, err
}
