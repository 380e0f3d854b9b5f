package agent

import (
	"context"

	"swiftlet/internal/tracing"
)

// makeTracing prepares the sending of traces where the configuration asks for it.
func (a *Agent) makeTracing(ctx context.Context) (err error) {
	cfg := a.cfg.Kubelet.Tracing
	if cfg == nil {
		return nil
	}
	if a.tracing, err = tracing.New(ctx, cfg, a.hostname, a.log); err != nil {
		return err
	}
	a.machine.parts = append(a.machine.parts, part{"tracing", a.tracing.Run})
	return nil
}
