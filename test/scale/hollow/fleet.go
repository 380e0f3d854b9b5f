package hollow

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// Fleet is nodes in one process.
type Fleet struct {
	nodes []*Node
}

// NewFleet starts the runtimes of nodes.
func NewFleet(configs []Config) (*Fleet, error) {
	f := &Fleet{}
	for _, cfg := range configs {
		n, err := New(cfg)
		if err != nil {
			f.Close()
			return nil, err
		}
		f.nodes = append(f.nodes, n)
	}
	return f, nil
}

// Close stops the runtimes.
func (f *Fleet) Close() {
	for _, n := range f.nodes {
		n.Close()
	}
}

// Run runs all agents, and starts one each pause. A value from restart stops all of them, and then starts
// all of them again at once. It returns when ctx is done or an agent has failed.
func (f *Fleet) Run(ctx context.Context, pause time.Duration, restart <-chan struct{}) error {
	for {
		again, err := f.runOnce(ctx, pause, restart)
		if !again {
			return err
		}
		pause = 0
	}
}

// runOnce runs all agents until ctx is done, one has failed, or a restart is requested.
func (f *Fleet) runOnce(ctx context.Context, pause time.Duration, restart <-chan struct{}) (again bool, err error) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var agents sync.WaitGroup
	failed := make(chan error, len(f.nodes))
	for _, n := range f.nodes {
		agents.Go(func() {
			if err := n.Run(ctx); err != nil && ctx.Err() == nil {
				failed <- fmt.Errorf("agent of node %s: %w", n.cfg.Name, err)
				stop()
			}
		})
		select {
		case <-time.After(pause):
		case <-ctx.Done(): // the others end at once
		}
	}
	select {
	case <-restart:
		again = true
	case <-ctx.Done():
	}
	stop()
	agents.Wait()
	close(failed)
	for one := range failed {
		err = errors.Join(err, one)
	}
	return again && err == nil, err
}
