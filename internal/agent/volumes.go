package agent

import "swiftlet/internal/volume"

func (a *Agent) makeVolumes() (err error) {
	deps := volume.Deps{
		Objects:     a.api.objects,
		Tokens:      a.api.tokens,
		Allocatable: a.machine.node.Allocatable,
		Events:      a.api.events,
		Meters:      a.metrics.Volume(),
		Clock:       a.clock,
		Log:         a.log,
	}
	if a.api.claims != nil {
		deps.Claims, deps.Node = a.api.claims, a.watchedNode
	}
	a.pods.volumes, err = volume.New(volume.Config{RootDir: a.cfg.Flags.RootDir}, deps)
	return err
}
