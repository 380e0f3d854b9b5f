package agent

import "context"

// noteReturn is called when the API server answers after it could not be reached.
func (a *Agent) noteReturn() {
	select {
	case a.api.back <- struct{}{}:
	default:
	}
}

// catchUp has everything tried again at once that failed while the API server was away. Each
// part would by itself, but after up to ten seconds.
func (a *Agent) catchUp(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-a.api.back:
		}
		a.log.Info("the API server is back")
		a.machine.node.Retry()
		a.pods.status.Retry()
		a.pods.workers.Retry()
		a.pods.keeper.Retry()
	}
}
