package agent

import "context"

// catchUp has everything retried at once that failed while the API server was unreachable.
// Each part would retry by itself, but after up to ten seconds.
func (a *Agent) catchUp(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-a.api.back:
		}
		a.log.Info("API server is reachable again, retrying what failed")
		a.machine.node.Retry()
		a.pods.status.Retry()
		a.pods.workers.Retry()
		a.pods.keeper.Retry()
	}
}
