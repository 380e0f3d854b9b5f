package agent

import (
	"k8s.io/apimachinery/pkg/types"

	"swiftlet/internal/kubeapi"
	"swiftlet/internal/resource/dra"
)

// makeClaims makes those who have drivers prepare resource claims.
func (a *Agent) makeClaims() (err error) {
	deps := dra.Deps{
		Wake:   func(uid types.UID) { a.pods.workers.Wake(uid) },
		Events: a.api.events,
		Meters: a.metrics.Claims(),
		Clock:  a.clock,
		Log:    a.log,
	}
	if c := a.api.clients; c != nil {
		if deps.API, err = kubeapi.NewResourceClaims(c.Kube, a.name); err != nil {
			return err
		}
	}
	gates := a.cfg.Features
	a.pods.claims, err = dra.New(dra.Config{
		RootDir: a.cfg.Flags.RootDir,
		Health:  gates.ResourceHealthStatus, HealthMessages: gates.ResourceHealthStatusMessage,
		OptionalOperations: gates.DRAOptionalNodeOperations,
	}, deps)
	return err
}
